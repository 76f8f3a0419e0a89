/** What happened in a workspace, over HTTP: read from a number on, and added to by whoever works there. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { Activity, ActivityEntry } from '../../../inbox/readers.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { readQueryFlag } from '../server/query.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { validateBody } from '../server/validate-body.ts'

const NOTE_BYTES_MAX = 4096
const TYPE_CHARACTERS_MAX = 64
const ENTRIES_MAX = 500
const ENTRIES_DEFAULT = 100

const isShort = (text: string): boolean => Buffer.byteLength(text) <= NOTE_BYTES_MAX

export const noteSchema = z.strictObject({
  type: z
    .string()
    .max(TYPE_CHARACTERS_MAX)
    .regex(/^[a-z][a-z0-9_.-]*$/, 'must be a small word such as "deployed"'),
  text: z.string().min(1).refine(isShort, `must not be longer than ${NOTE_BYTES_MAX} bytes`),
})

export interface ActivityRouteOptions {
  readonly activity: Activity
  readonly auth: HttpAuth
}

export function activityRoutes({ activity, auth }: ActivityRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const at = '/workspaces/:id/activity'
  routes.get(at, allow(auth, 'activity.read'), async (context) => {
    const workspaceId = context.req.param('id')
    requireOwnWorkspace(context.get('identity'), workspaceId)
    const type = context.req.query('type')
    const sinceSeq = readQueryNumber(context, 'since', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0
    const limit = readQueryNumber(context, 'limit', { min: 1, max: ENTRIES_MAX }) ?? ENTRIES_DEFAULT
    const newest = readQueryFlag(context, 'newest')
    const page = await activity.read({ workspaceId, sinceSeq, limit, newest, ...(type !== undefined && { type }) })
    return context.json({ activity: page.entries.map(viewActivityEntry), next: page.nextSeq })
  })
  routes.post(at, allow(auth, 'activity.report'), async (context) => {
    const workspaceId = context.req.param('id')
    const identity = context.get('identity')
    requireOwnWorkspace(identity, workspaceId)
    const body = await readJson(context.env.incoming, BODY_BYTES_MAX)
    const note = validateBody(noteSchema, body, 'a note')
    return context.json({ seq: await activity.addNote(workspaceId, { ...note, by: identity.name }) }, 201)
  })
  return routes
}

/** A whole number of the query within its range; undefined where it is not there. */
export function readQueryNumber(
  context: Context<HttpEnv>,
  name: string,
  range: { min: number; max: number },
): number | undefined {
  const given = context.req.query(name)
  if (given === undefined) return undefined
  const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (number >= range.min && number <= range.max) return number
  const message = `${name} must be a whole number from ${range.min} to ${range.max}`
  throw new MoleculeError('invalid_request', message, { details: { path: name } })
}

export function viewActivityEntry({ seq, atMs, taskId, ...rest }: ActivityEntry) {
  return { seq, at: new Date(atMs).toISOString(), ...(taskId !== undefined && { task_id: taskId }), ...rest }
}
