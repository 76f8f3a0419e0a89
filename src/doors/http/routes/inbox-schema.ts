/**
 * Schemas of the bodies that a bridge sends: the types of the inbox seam, checked as untrusted input. The content of a
 * part is read by `readPart`. Unknown fields of events and outcomes are allowed, because a bridge may be newer than its
 * platform. Every list and text has a limit; the body's limit bounds the total.
 */
import { z } from 'zod'
import type { Ask, LeaseKey, NumberedEvents, Outcome } from '../../../inbox/inbox.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { WAITS_FOR } from '../../../protocol/brief.ts'
import { DIFF_BYTES_MAX, DIFF_FILES_MAX, DIFF_PATH_CHARACTERS_MAX } from '../../../protocol/file-diff.ts'
import { FILE_NAME_CHARACTERS_MAX, shownFileName } from '../../../protocol/file-name.ts'
import { readPart } from '../../../protocol/part.ts'
import { ID_CHARACTERS_MAX } from '../../../protocol/schemas.ts'

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
export const suspendSchema = z.object({ key })
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

export const toLeaseKey = (workspaceId: string, given: z.output<typeof key>): LeaseKey => ({ workspaceId, ...given })

// The casts below: a field that JSON left out is absent, not undefined, which zod's types cannot express.

export function toOutcome(given: z.output<typeof outcome>): Outcome {
  if (given.type === 'dead') return { ...given, ...readArtifacts(given, 'outcome') } as Outcome
  if (given.type !== 'done') return given as Outcome
  const read = { parts: readParts(given.parts, 'outcome.parts'), ...readArtifacts(given, 'outcome') }
  return { ...given, ...read, ...readStatusMessage(given, 'outcome') } as Outcome
}

export function toEvents({ from, events: given, notes }: z.output<typeof numberedEvents>): NumberedEvents {
  const read = given.map((one, index) => {
    const path = `events.${index}`
    if (one.type === 'artifact') return { ...one, artifact: readArtifact(one.artifact, `${path}.artifact`) }
    return one.type === 'status' ? { ...one, ...readStatusMessage(one, path) } : one
  })
  return { from, events: read, ...(notes && { notes }) } as NumberedEvents
}

export function toAsk({ permission, ...given }: z.output<typeof askSchema>['question']): Ask {
  const kind = permission === undefined ? { kind: 'question' } : { kind: 'permission', ...permission }
  return { ...given, ...kind, parts: readParts(given.parts, 'question.parts') } as Ask
}

const readParts = (given: z.output<typeof parts>, path: string): Part[] =>
  given.map((part, index) => readPart(part, `${path}.${index}`))

const readArtifact = (given: z.output<typeof artifact>, path: string) => ({
  ...given,
  parts: readParts(given.parts, `${path}.parts`),
})

const readArtifacts = (given: { artifacts?: z.output<typeof artifacts> | undefined }, path: string) =>
  given.artifacts && { artifacts: given.artifacts.map((one, at) => readArtifact(one, `${path}.artifacts.${at}`)) }

const readStatusMessage = (given: { said?: z.output<typeof statusMessage> | undefined }, path: string) =>
  given.said && { said: { ...given.said, parts: readParts(given.said.parts, `${path}.said.parts`) } }
