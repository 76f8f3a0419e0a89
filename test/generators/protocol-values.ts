/**
 * Generators of protocol values for property tests. They are hostile on purpose: metadata often has keys that look like
 * the keys that the translation itself uses.
 */
import fc from 'fast-check'
import type {
  Artifact,
  Json,
  Message,
  Metadata,
  Part,
  StreamResponse,
  Task,
  TaskArtifactUpdate,
  TaskState,
  TaskStatus,
  TaskStatusUpdate,
} from '../../src/protocol/a2a.ts'
import { shownFileName } from '../../src/protocol/file-name.ts'
import type { PushConfig } from '../../src/protocol/push-config.ts'
import type {
  V03Artifact,
  V03Event,
  V03File,
  V03Message,
  V03Part,
  V03TaskState,
  V03TaskStatus,
} from '../../src/protocol/v03/v03-types.ts'

const FINAL_V03 = ['completed', 'failed', 'canceled', 'rejected', 'input-required', 'auth-required'] as const
const OPEN_V03 = ['submitted', 'working'] as const

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>
const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('', 'text/plain', 'notes.md'))
const key = fc.oneof(
  fc.string(),
  fc.constantFrom('value', '__proto__', 'constructor', 'data_part_compat', 'molecule_part'),
)
const id = fc.string({ minLength: 1, maxLength: 40 })
const base64 = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64'))
const timestamp = fc
  .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
  .map((date) => date.toISOString())
const object = fc.dictionary(key, json, { maxKeys: 4 }) as fc.Arbitrary<Metadata>

type Members = Readonly<Record<string, fc.Arbitrary<unknown>>>

/** A record whose optional members are absent, never undefined. The caller names its type. */
function record<T>(required: Members, optional: Members = {}): fc.Arbitrary<T> {
  const members = { ...required, ...optional }
  const made = fc.record(members, { requiredKeys: Object.keys(required), noNullPrototype: true })
  return made as fc.Arbitrary<unknown> as fc.Arbitrary<T>
}

/** Metadata, often with the keys of v03-part.ts in valid, invalid and nested forms. */
const metadata: fc.Arbitrary<Metadata> = fc.letrec<{ marked: Metadata }>((tie) => ({
  marked: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    object,
    record<Metadata>(
      {},
      {
        data_part_compat: fc.oneof({ arbitrary: fc.constant(true), weight: 3 }, { arbitrary: json, weight: 1 }),
        molecule_part: fc.oneof(
          json,
          record<Metadata>({}, { mediaType: text, filename: text, metadata: tie('marked') }),
        ),
        other: json,
      },
    ),
  ),
})).marked

const data = fc.oneof(
  json,
  object,
  json.map((value): Json => ({ value })),
)
/** As `readPart` keeps it. */
const filename = text.map(shownFileName)
const partRest = { mediaType: text, filename, metadata }

export const part: fc.Arbitrary<Part> = fc.oneof(
  record<Part>({ text }, partRest),
  record<Part>({ raw: base64 }, partRest),
  record<Part>({ url: id }, partRest),
  record<Part>({ data }, partRest),
)

const parts = fc.array(part, { minLength: 1, maxLength: 4 })
const strings = fc.array(id, { maxLength: 3 })

export const message = record<Message>(
  { messageId: id, role: fc.constantFrom('ROLE_USER', 'ROLE_AGENT'), parts },
  { contextId: id, taskId: id, metadata: object, extensions: strings, referenceTaskIds: strings },
)

const state = fc.constantFrom<TaskState>(
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
)
const status = record<TaskStatus>({ state }, { message, timestamp })
const artifactRest = { name: text, description: text, metadata: object, extensions: strings }
const artifact = record<Artifact>({ artifactId: id, parts }, artifactRest)
const task = record<Task>(
  { id, contextId: id, status },
  {
    artifacts: fc.array(artifact, { maxLength: 2 }),
    history: fc.array(message, { maxLength: 2 }),
    metadata: object,
  },
)
const ofTask = { taskId: id, contextId: id }

export const event: fc.Arbitrary<StreamResponse> = fc.oneof(
  fc.record({ task }),
  fc.record({ message }),
  fc.record({ statusUpdate: record<TaskStatusUpdate>({ ...ofTask, status }, { metadata: object }) }),
  fc.record({
    artifactUpdate: record<TaskArtifactUpdate>(
      { ...ofTask, artifact },
      { append: fc.boolean(), lastChunk: fc.boolean(), metadata: object },
    ),
  }),
)

export const pushConfig = record<PushConfig>(
  { taskId: id, url: fc.webUrl() },
  { id, token: text, authentication: record<{ scheme: string }>({ scheme: text }, { credentials: text }) },
)

// ---- 0.3

const v03File = fc.oneof(
  record<V03File>({ bytes: base64 }, { mimeType: text, name: text }),
  record<V03File>({ uri: id }, { mimeType: text, name: text }),
)

export const v03Part: fc.Arbitrary<V03Part> = fc.oneof(
  record<V03Part>({ kind: fc.constant('text'), text }, { metadata }),
  record<V03Part>({ kind: fc.constant('file'), file: v03File }, { metadata }),
  record<V03Part>(
    {
      kind: fc.constant('data'),
      data: fc.oneof(
        object,
        json.map((value) => ({ value })),
      ),
    },
    { metadata },
  ),
)

const v03Parts = fc.array(v03Part, { minLength: 1, maxLength: 4 })

export const v03Message = record<V03Message>(
  { kind: fc.constant('message'), messageId: id, role: fc.constantFrom('user', 'agent'), parts: v03Parts },
  { contextId: id, taskId: id, metadata: object, extensions: strings, referenceTaskIds: strings },
)

const v03Status = (states: readonly V03TaskState[]) =>
  record<V03TaskStatus>({ state: fc.constantFrom(...states) }, { message: v03Message, timestamp })
const v03Artifact = record<V03Artifact>({ artifactId: id, parts: v03Parts }, artifactRest)
const v03StatusUpdate = (final: boolean, states: readonly V03TaskState[]) =>
  record<V03Event>(
    { kind: fc.constant('status-update'), ...ofTask, status: v03Status(states), final: fc.constant(final) },
    { metadata: object },
  )

/** `final` agrees with the state here. Another test covers events in which it does not. */
export const v03Event: fc.Arbitrary<V03Event> = fc.oneof(
  v03Message,
  v03StatusUpdate(true, FINAL_V03),
  v03StatusUpdate(false, OPEN_V03),
  record<V03Event>(
    { kind: fc.constant('artifact-update'), ...ofTask, artifact: v03Artifact },
    { append: fc.boolean(), lastChunk: fc.boolean(), metadata: object },
  ),
  record<V03Event>(
    { kind: fc.constant('task'), id, contextId: id, status: v03Status([...FINAL_V03, ...OPEN_V03]) },
    {
      artifacts: fc.array(v03Artifact, { maxLength: 2 }),
      history: fc.array(v03Message, { maxLength: 2 }),
      metadata: object,
    },
  ),
)
