/**
 * The activity of a workspace over HTTP: read its entries, add a note, set its status line. The status line is shown on
 * the workspace's card and added to its log.
 */
import { z } from 'zod'
import { type ActivityEntry, PLATFORM_ENTRY_TYPES } from '../../../inbox/readers.ts'
import { maskTokens } from '../../../token-mask.ts'
import { readQueryFlag, readQueryNumber } from '../server/query.ts'
import { route } from './route.ts'

const NOTE_BYTES_MAX = 4096
const TYPE_CHARACTERS_MAX = 64
const ENTRIES_MAX = 500
const ENTRIES_DEFAULT = 100
const STATUS_CHARACTERS_MAX = 500

const isShort = (text: string): boolean => Buffer.byteLength(text) <= NOTE_BYTES_MAX

const noteSchema = z.strictObject({
  type: z
    .string()
    .max(TYPE_CHARACTERS_MAX)
    .regex(/^[a-z][a-z0-9_.-]*$/, 'must be a lower-case word such as "deployed"')
    .refine((type) => !PLATFORM_ENTRY_TYPES.has(type), 'is a type that only the platform writes; choose another word'),
  text: z.string().min(1).refine(isShort, `must not be longer than ${NOTE_BYTES_MAX} bytes`),
})

const statusSchema = z.strictObject({ text: z.string().max(STATUS_CHARACTERS_MAX) })

export const activityRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/activity',
    access: 'activity.read',
    reach: 'own',
    summary:
      'Activity after the number "since" and before the number "before"; "type" and "limit" filter, newest=true reads the last entries, titles=true adds the first words of each task',
    success: [200, 'The entries, the number to go on from, and "first", which as "before" reads the page before'],
    async handle({ context }, { activity }) {
      const workspaceId = context.req.param('id')
      const type = context.req.query('type')
      const sinceSeq = readQueryNumber(context, 'since', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0
      const limit = readQueryNumber(context, 'limit', { min: 1, max: ENTRIES_MAX }) ?? ENTRIES_DEFAULT
      const beforeSeq = readQueryNumber(context, 'before', { min: 1, max: Number.MAX_SAFE_INTEGER })
      const page = await activity.read({
        workspaceId,
        sinceSeq,
        limit,
        newest: readQueryFlag(context, 'newest'),
        withTitles: readQueryFlag(context, 'titles'),
        ...(type !== undefined && { type }),
        ...(beforeSeq !== undefined && { beforeSeq }),
      })
      const titles = page.titles === undefined ? {} : { titles: Object.fromEntries(page.titles) }
      const first = page.firstSeq === undefined ? {} : { first: page.firstSeq }
      return context.json({ activity: page.entries.map(viewActivityEntry), next: page.nextSeq, ...first, ...titles })
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/activity',
    access: 'activity.report',
    reach: 'own',
    body: { schema: noteSchema, name: 'a note' },
    summary: 'Add a note to the activity',
    success: [201, 'The number of the note'],
    async handle({ context, identity, body }, { activity }) {
      const seq = await activity.addNote(context.req.param('id'), { ...maskTokens(body), by: identity.name })
      return context.json({ seq }, 201)
    },
  }),
  route({
    method: 'put',
    path: '/workspaces/:id/status',
    access: 'status.report',
    reach: 'own',
    body: { schema: statusSchema, name: 'a status' },
    summary: 'Set the status line of a workspace; an empty text removes it',
    success: [200, 'The text as it is shown'],
    async handle({ context, identity, body }, { registry, activity }) {
      const id = context.req.param('id')
      const line = maskTokens(body.text.replaceAll(/\s+/g, ' ').trim())
      await registry.setStatusText(id, line)
      await activity.addNote(id, { type: 'status_text', text: line, by: identity.name })
      return context.json({ status_text: line })
    },
  }),
]

export function viewActivityEntry({ seq, atMs, taskId, ...rest }: ActivityEntry) {
  return { seq, at: new Date(atMs).toISOString(), ...(taskId !== undefined && { task_id: taskId }), ...rest }
}
