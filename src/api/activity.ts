/**
 * The activity of a workspace: its entries, notes, the status line, and the log as it grows, as server-sent events or over
 * a WebSocket.
 */
import { z } from 'zod'
import { contentOf, endpoint, nothing } from './endpoint.ts'

const NOTE_BYTES_MAX = 4096
const NOTE_TYPE_CHARACTERS_MAX = 64
const STATUS_CHARACTERS_MAX = 500

/**
 * Types of the entries that the platform writes itself. A note from outside has another type: otherwise an agent could
 * write that a person allowed something.
 */
const PLATFORM_ENTRY_TYPES: ReadonlySet<string> = new Set([
  ...['status', 'retry', 'reply', 'late', 'tool', 'progress', 'artifact', 'text', 'permission', 'rule', 'delegated'],
  ...['budget', 'discarded', 'status_text', 'config_changed', 'adapter_changed'],
])

const isShort = (text: string): boolean => Buffer.byteLength(text) <= NOTE_BYTES_MAX

/** What a tool changed in one file. */
export const fileDiffSchema = z.strictObject({ path: z.string(), diff: z.string().describe('Unified text.') })

const activityEntrySchema = z.strictObject({
  seq: z.number().describe('Its number in the log. Entries that were stored together share one.'),
  at: z.string(),
  task_id: z.string().optional(),
  conversation_id: z.string().optional().describe('Of the task.'),
  type: z
    .string()
    .describe(
      'status, reply, partial, retry, late, tool, progress, artifact, permission, rule, delegated, text (a piece of a reply, in live events only), or the type of a note.',
    ),
  state: z.string().optional(),
  name: z.string().optional().describe('Of a tool, or of the workspace that was delegated to.'),
  subject: z
    .string()
    .optional()
    .describe('What exactly a tool does; the task of a delegation; the pattern of a rule, or of what a rule allowed.'),
  diffs: z
    .array(fileDiffSchema)
    .optional()
    .describe('Of a tool that has ended: the files that it changed, where the agent reports them.'),
  text: z.string().optional(),
  by: z
    .string()
    .optional()
    .describe('The author of a note, the person who answered a permission ask, or the maker of the rule that did.'),
  principal: z.string().optional().describe('Of the answer to a permission ask.'),
  door: z.string().optional().describe('Of the answer to a permission ask.'),
})

export const readActivity = endpoint('GET /workspaces/{id}/activity', {
  access: 'activity.read',
  reach: 'own',
  summary:
    'Activity after the number "since" and before the number "before"; "type" and "limit" filter, newest=true reads the last entries, titles=true adds the first words of each task',
  query: z.object({
    since: z.int().min(0).default(0),
    before: z.int().min(1).optional(),
    limit: z.int().min(1).max(500).default(100),
    type: z.string().optional(),
    newest: z.boolean().default(false),
    titles: z.boolean().default(false),
  }),
  success: [200, 'The entries, the number to go on from, and "first", which as "before" reads the page before'],
  answer: z.strictObject({
    activity: z.array(activityEntrySchema),
    next: z.number().describe('The "since" of the next page; unchanged when nothing is new.'),
    first: z.number().optional().describe('Absent where nothing was found.'),
    titles: z.record(z.string(), z.string()).optional().describe('The first words of the message of each task.'),
  }),
})

export const addNote = endpoint('POST /workspaces/{id}/activity', {
  access: 'activity.report',
  reach: 'own',
  body: {
    schema: z.strictObject({
      type: z
        .string()
        .max(NOTE_TYPE_CHARACTERS_MAX)
        .regex(/^[a-z][a-z0-9_.-]*$/, 'must be a lower-case word such as "deployed"')
        .refine(
          (type) => !PLATFORM_ENTRY_TYPES.has(type),
          'is a type that only the platform writes; choose another word',
        ),
      text: z.string().min(1).refine(isShort, `must not be longer than ${NOTE_BYTES_MAX} bytes`),
    }),
    name: 'a note',
  },
  summary: 'Add a note to the activity',
  success: [201, 'The number of the note'],
  answer: z.strictObject({ seq: z.number() }),
})

export const setStatusText = endpoint('PUT /workspaces/{id}/status', {
  access: 'status.report',
  reach: 'own',
  body: { schema: z.strictObject({ text: z.string().max(STATUS_CHARACTERS_MAX) }), name: 'a status' },
  summary: 'Set the status line of a workspace; an empty text removes it',
  success: [200, 'The text as it is shown'],
  answer: z.strictObject({ status_text: z.string() }),
})

export const followEvents = endpoint('GET /workspaces/{id}/events', {
  access: 'activity.read',
  reach: 'own',
  summary: 'The whole log as server-sent events, after Last-Event-ID or from now on',
  query: z.object({ since: z.string().optional().describe('In place of the header Last-Event-ID.') }),
  success: [200, 'The stream'],
  answer: contentOf('text/event-stream'),
})

export const connectSocket = endpoint('GET /ws', {
  access: 'activity.read',
  summary: 'Events of many workspaces over a WebSocket; a request without an upgrade is answered with 426',
  success: [101, 'The socket'],
  answer: nothing,
})

export const activityEndpoints = [readActivity, addNote, setStatusText, followEvents, connectSocket] as const
