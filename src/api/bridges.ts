/**
 * The inbox of a workspace that bridges run: a bridge waits for leases, reports what its turns do, and settles them under the
 * epoch of the lease. The bodies are the types of the inbox seam, checked as untrusted input: unknown fields of events and
 * outcomes are allowed, because a bridge may be newer than its platform. Every list and text has a limit; the limit of the
 * body bounds the total. The content of a part is read by `readPart`.
 */
import { z } from 'zod'
import { WAITS_FOR } from '../protocol/brief.ts'
import { DIFF_BYTES_MAX, DIFF_FILES_MAX, DIFF_PATH_CHARACTERS_MAX } from '../protocol/file-diff.ts'
import { FILE_NAME_CHARACTERS_MAX, shownFileName } from '../protocol/file-name.ts'
import { ID_CHARACTERS_MAX } from '../protocol/schemas.ts'
import { type EndpointBody, endpoint } from './endpoint.ts'
import { messageSchema, partSchema, senderSchema } from './message.ts'

/** A reply as large as a command may print, with the overhead of JSON. */
export const INBOX_BODY_BYTES_MAX = 32 * 1024 * 1024
/** An append of 10,000 events. */
const INBOX_JSON_VALUES_MAX = 60_000
/** Below the time after which proxies close a silent call. */
const WAIT_MS_MAX = 30_000
const LEASES_MAX = 256
const EVENTS_MAX = 10_000
const PARTS_MAX = 1000
const ARTIFACTS_MAX = 1000
const NOTES_MAX = 100
const TEXT_CHARACTERS_MAX = 64 * 1024
const SESSION_CHARACTERS_MAX = 4096
const AFTER_MS_MAX = 24 * 3600_000
const ASK_MS_MAX = 7 * 24 * 3600_000
/** The most that a person can be expected to review. */
const SUBJECT_CHARACTERS_MAX = 256 * 1024

const id = z.string().min(1).max(ID_CHARACTERS_MAX)
const shortText = z.string().max(TEXT_CHARACTERS_MAX)
const parts = z.array(z.looseObject({})).max(PARTS_MAX)
const metadata = z.record(z.string(), z.unknown())
const statusMessage = z.object({ parts, metadata: metadata.optional() })
const artifact = z.object({
  artifactId: id,
  name: z.string().max(FILE_NAME_CHARACTERS_MAX).transform(shownFileName).optional(),
  description: shortText.optional(),
  parts,
  metadata: metadata.optional(),
  extensions: z.array(shortText).max(100).optional(),
})
const artifacts = z.array(artifact).max(ARTIFACTS_MAX)
const key = z.object({ conversationId: id, taskId: id, messageId: id, epoch: z.int().min(1) })
/** Where sessions are stored: another machine, or another agent on it, does not have them. */
const host = z.string().regex(/^[\w.:-]{1,200}$/)

const fileDiff = z.object({
  path: z.string().max(DIFF_PATH_CHARACTERS_MAX),
  // The last line of a diff, which counts the lines left out, comes on top.
  diff: z.string().max(2 * DIFF_BYTES_MAX),
})

const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), delta: z.string() }),
  z.object({ type: z.literal('artifact'), artifact, append: z.boolean(), lastChunk: z.boolean() }),
  z.object({
    type: z.literal('tool'),
    name: shortText,
    subject: shortText.optional(),
    state: z.enum(['started', 'finished', 'failed']),
    diffs: z.array(fileDiff).max(DIFF_FILES_MAX).optional(),
  }),
  z.object({ type: z.literal('status'), text: shortText, said: statusMessage.optional() }),
])
const eventsShape = {
  from: z.int().min(1),
  events: z.array(event).max(EVENTS_MAX),
  notes: z
    .record(id, shortText)
    .refine((notes) => Object.keys(notes).length <= NOTES_MAX, `at most ${NOTES_MAX} notes at a time`)
    .optional(),
}

const numberedEvents = z.object(eventsShape)

const failure = z.object({
  code: id,
  message: shortText,
  sentence: shortText.optional(),
  category: id.optional(),
  id: id.optional(),
  details: metadata.optional(),
})
const count = z.number().min(0).optional()
const usage = z.object({ inputTokens: count, outputTokens: count, costUsd: count, durationMs: count }).optional()
const outcome = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('done'),
    finality: z.enum(['completed', 'input_required', 'auth_required', 'rejected']),
    parts,
    artifacts,
    metadata: metadata.optional(),
    said: statusMessage.optional(),
    notice: shortText.optional(),
    session: z.string().min(1).max(SESSION_CHARACTERS_MAX).optional(),
    usage,
  }),
  z.object({
    type: z.literal('retry'),
    failure,
    afterMs: z.int().min(0).max(AFTER_MS_MAX),
    reason: z.enum(['failure', 'session_lost']),
    interrupted: z.boolean(),
    parked: z.boolean().optional(),
    usage,
  }),
  z.object({ type: z.literal('dead'), failure, artifacts: artifacts.optional(), usage }),
  z.object({ type: z.literal('stopped'), usage }),
  z.object({
    type: z.literal('released'),
    interrupted: z.boolean(),
    parked: z
      .object({
        afterMs: z.int().min(0).max(AFTER_MS_MAX),
        said: statusMessage,
        // A bridge of a later version may wait for something that this platform does not know.
        waitsFor: z.enum(WAITS_FOR).optional().catch(undefined),
      })
      .optional(),
    usage,
  }),
])

export const leaseSchema = z.object({
  bridge: z.string().regex(/^[\w-]{1,100}$/, 'letters, digits, _ and -, at most 100'),
  host,
  backend: id.optional(),
  leases_max: z.int().min(0).max(LEASES_MAX),
  holding: z.array(z.string().regex(/^\w{1,64}\.\d{1,10}$/)).max(LEASES_MAX),
  wait_ms: z.int().min(0).max(WAIT_MS_MAX),
})
export const beginSchema = z.object({ key, text: shortText.optional() })
export const extendSchema = z.object({ keys: z.array(key).max(LEASES_MAX) })
export const appendSchema = z.object({ key, ...eventsShape })
export const settleSchema = z.object({ key, host, outcome, unsent: numberedEvents.optional() })
const suspendSchema = z.object({ key })
export const askSchema = z.object({
  key,
  question: z.object({
    id,
    parts,
    permission: z
      .object({ tool: z.string().min(1).max(256), subject: z.string().max(SUBJECT_CHARACTERS_MAX) })
      .optional(),
    timeoutMs: z.int().min(1).max(ASK_MS_MAX).optional(),
  }),
})

// ---- answers

const sentKey = z.strictObject({
  workspaceId: z.string(),
  conversationId: z.string(),
  taskId: z.string(),
  messageId: z.string(),
  epoch: z.int(),
})

const sentLease = sentKey.extend({
  contextId: z.string(),
  principal: z.string(),
  sender: senderSchema,
  envelope: z.string().describe('The JSON-RPC request of the sender, as JSON.'),
  idempotencyKey: z.string(),
  failures: z.number().describe('Attempts before this one that failed.'),
  losses: z.number().describe('Attempts before this one whose worker vanished.'),
  interrupted: z.boolean().describe('An earlier attempt began and did not end properly.'),
  sessionRetried: z.boolean().describe('The one fresh run after a lost session is used up.'),
  parked: z
    .strictObject({ times: z.number(), sinceMs: z.number().describe('How long ago it was parked first.') })
    .exactOptional()
    .describe('A limit of the model provider holds.'),
})

/** `protocol/brief.ts` says what each field is. The bridge has its own backend, options and folder. */
const sentBrief = z.strictObject({
  systemPrompt: z.string(),
  peers: z.string().exactOptional(),
  sessionToken: z.string().exactOptional().describe("The backend's own token of the session on this host."),
  history: z.array(messageSchema).exactOptional(),
  earlierConversation: z
    .strictObject({ text: z.string().exactOptional(), notice: z.string().exactOptional() })
    .exactOptional(),
  recalled: z.string().exactOptional(),
  model: z.string().exactOptional(),
  maxAttempts: z.number(),
  attemptsUnset: z.boolean().exactOptional(),
  rateLimitPatienceMs: z.number().exactOptional(),
  notes: z.record(z.string(), z.string()).exactOptional(),
  hasMcp: z.boolean().exactOptional(),
  metered: z.boolean().exactOptional(),
  costUsdPerDayMax: z.number().exactOptional(),
  parked: z
    .strictObject({ afterMs: z.number(), reason: z.string(), waitsFor: z.enum(WAITS_FOR).exactOptional() })
    .exactOptional(),
  env: z.record(z.string(), z.string()).describe("At most the workspace's own token."),
})

const handout = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('lease'), lease: sentLease, brief: sentBrief }),
  z.strictObject({ type: z.literal('stop'), key: sentKey }),
  z.strictObject({
    type: z.literal('waiting'),
    key: sentKey,
    waiting: z.boolean().describe('True: the turn waits for a delegation, and its time limits are paused.'),
  }),
  z.strictObject({
    type: z.literal('answer'),
    key: sentKey,
    askId: z.string(),
    parts: z.array(partSchema).optional().describe('Absent: denied, or no answer in time.'),
  }),
])

const standings = ['held', 'stop', 'stale'] as const
const standing = z.strictObject({ standing: z.enum(standings) })
const standingOrRefused = z.strictObject({
  standing: z.enum([...standings, 'refused']).describe('"refused": too many turns wait.'),
})

// ---- endpoints

/** The rate limit does not count these calls: there are as many as turns. */
const worker = { access: 'inbox.work', reach: 'own', counted: false } as const

function bodyOf<Schema extends z.ZodObject>(schema: Schema, name: string): EndpointBody<Schema> {
  return { schema, name, bytesMax: INBOX_BODY_BYTES_MAX, valuesMax: INBOX_JSON_VALUES_MAX }
}

export const takeLeases = endpoint('POST /workspaces/{id}/inbox/lease', {
  ...worker,
  body: bodyOf(leaseSchema, 'a lease call'),
  summary: 'Wait for messages to run, each with its brief; the call names the leases that the bridge holds',
  success: [200, 'The directives'],
  answer: z.strictObject({ handouts: z.array(handout) }),
})

export const beginTurn = endpoint('POST /workspaces/{id}/inbox/begin', {
  ...worker,
  body: bodyOf(beginSchema, 'the begin of a turn'),
  summary: 'The turn of a lease begins',
  success: [200, 'The standing of each lease'],
  answer: standing,
})

export const extendLeases = endpoint('POST /workspaces/{id}/inbox/extend', {
  ...worker,
  body: bodyOf(extendSchema, 'a renewal'),
  summary: 'Renew leases',
  success: [200, 'The standing of each lease'],
  // In two lists: a bridge of an earlier version ends a turn whose standing it does not know.
  answer: z.strictObject({
    standings: z.array(z.enum(standings)).describe('In the order of the keys.'),
    waiting: z.array(z.boolean()).describe('Whether the turn waits for another agent or a person.'),
  }),
})

export const appendEvents = endpoint('POST /workspaces/{id}/inbox/append', {
  ...worker,
  body: bodyOf(appendSchema, 'events of a turn'),
  summary: 'Append events of a running turn',
  success: [200, 'The standing of each lease'],
  answer: standing,
})

export const settleLease = endpoint('POST /workspaces/{id}/inbox/settle', {
  ...worker,
  body: bodyOf(settleSchema, 'an outcome'),
  summary: 'Close a lease with its outcome',
  success: [200, 'The standing of each lease'],
  answer: z.strictObject({ answer: z.enum(['settled', 'stale']).describe('"stale": this result is not the reply.') }),
})

export const suspendTurn = endpoint('POST /workspaces/{id}/inbox/suspend', {
  ...worker,
  body: bodyOf(suspendSchema, 'a wait'),
  summary: 'A turn waits and gives up its slot',
  success: [200, 'The standing of each lease'],
  answer: standingOrRefused,
})

export const resumeTurn = endpoint('POST /workspaces/{id}/inbox/resume', {
  ...worker,
  body: bodyOf(suspendSchema, 'a wait'),
  summary: 'The wait of a turn is over',
  success: [200, 'The standing of each lease'],
  answer: standing,
})

export const askSender = endpoint('POST /workspaces/{id}/inbox/ask', {
  ...worker,
  body: bodyOf(askSchema, 'a question'),
  summary: 'Ask the sender of the task a question of its turn',
  success: [200, 'The standing of each lease'],
  answer: standingOrRefused,
})

export const bridgeEndpoints = [
  takeLeases,
  beginTurn,
  extendLeases,
  appendEvents,
  settleLease,
  suspendTurn,
  resumeTurn,
  askSender,
] as const
