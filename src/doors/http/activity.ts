/** What happened in a workspace, over HTTP: read from a number on, and added to by whoever works there. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../errors.ts'
import type { Activity, ActivityEntry } from '../../inbox/activity-seam.ts'
import type { Auth } from './auth.ts'
import { BODY_BYTES_MAX, readJson } from './body.ts'
import { allow, type HttpEnv } from './context.ts'
import { readForm } from './form.ts'
import { requireItself } from './reach.ts'
import { readSwitch } from './switch.ts'

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

export interface ActivityOptions {
  readonly activity: Activity
  readonly auth: Auth
}

export function activityRoutes({ activity, auth }: ActivityOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const at = '/workspaces/:id/activity'
  routes.get(at, allow(auth, 'activity.read'), async (context) => {
    const workspaceId = context.req.param('id')
    requireItself(context.get('identity'), workspaceId)
    const type = context.req.query('type')
    const sinceSeq = wholeNumber(context, 'since', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0
    const limit = wholeNumber(context, 'limit', { min: 1, max: ENTRIES_MAX }) ?? ENTRIES_DEFAULT
    const newest = readSwitch(context, 'newest')
    const page = await activity.read({ workspaceId, sinceSeq, limit, newest, ...(type !== undefined && { type }) })
    return context.json({ activity: page.entries.map(viewEntry), next: page.nextSeq })
  })
  routes.post(at, allow(auth, 'activity.report'), async (context) => {
    const workspaceId = context.req.param('id')
    const identity = context.get('identity')
    requireItself(identity, workspaceId)
    const body = await readJson(context.env.incoming, BODY_BYTES_MAX)
    const note = readForm(noteSchema, body, 'a note')
    return context.json({ seq: await activity.report(workspaceId, { ...note, by: identity.name }) }, 201)
  })
  return routes
}

/** A whole number of the query within its range; undefined where it is not there. */
export function wholeNumber(
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

export function viewEntry({ seq, atMs, taskId, ...told }: ActivityEntry) {
  return { seq, at: new Date(atMs).toISOString(), ...(taskId !== undefined && { task_id: taskId }), ...told }
}
