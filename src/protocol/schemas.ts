/**
 * The zod schemas of A2A requests: sizes, types and required fields, for the doors, the envelope and the OpenAPI
 * document. Unknown fields are allowed, and null counts as absent, as in JSON of protocol buffers. Parts have their own
 * reader (part.ts), because the error of a schema for their three forms would not help the sender.
 */
import { z } from 'zod'
import { TASK_STATES } from './a2a.ts'
import './field-problems.ts'
import { invalidRequest } from './invalid-request.ts'

export const ID_CHARACTERS_MAX = 256
const PARTS_MAX = 1000
const HISTORY_LENGTH_MAX = 1_000_000
const PAGE_SIZE_MAX = 100
/**
 * Levels of objects and arrays in a body. A deeper body is refused, because recursive code would overflow its stack.
 */
export const JSON_DEPTH_MAX = 64

const LIST_MAX = 100
const METHOD_CHARACTERS_MAX = 128
/** Of the body of a request. */
export const A2A_BODY_BYTES_MAX = 8 * 1024 * 1024
export const URL_CHARACTERS_MAX = 2048
export const SECRET_CHARACTERS_MAX = 8192

/** The parsed value. Throws `invalid_request` with the place and reason of the first problem. */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown, path: string): z.output<Schema> {
  const result = safeParse(schema, value)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  throw invalidRequest(formatPath(path, issue?.path ?? []), issue?.message ?? 'is not valid')
}

/**
 * `schema.safeParse` that never throws. zod compares `length` before it has checked the type, and throws for an object
 * whose `length` cannot be compared.
 */
export function safeParse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.ZodSafeParseResult<z.output<Schema>> {
  try {
    return schema.safeParse(value)
  } catch (cause) {
    const message = 'must not have an object with a "length" in place of a text or a list'
    const error = new z.ZodError([{ code: 'custom', path: [], message, input: undefined }])
    error.cause = cause
    return { success: false, error: error as z.ZodError<z.output<Schema>> }
  }
}

/** Whether objects and arrays are nested at most `levelsMax` deep. Iterates by level: recursion could overflow. */
export function jsonDepthWithin(value: unknown, levelsMax: number): boolean {
  let level = [value].filter(isContainer)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > levelsMax) return false
    const next: object[] = []
    for (const container of level) {
      for (const member of Array.isArray(container) ? container : Object.values(container)) {
        if (isContainer(member)) next.push(member)
      }
    }
    level = next
  }
  return true
}

const boundedString = (charactersMax: number) =>
  z.string('must be a string').max(charactersMax, `must have at most ${charactersMax} characters`)
const requiredId = boundedString(ID_CHARACTERS_MAX).min(1, 'must not be empty')
const optionalId = boundedString(ID_CHARACTERS_MAX).nullish()
const flag = z.boolean('must be true or false').nullish()
const metadata = z
  .looseObject({ idempotency_key: optionalId }, 'must be an object')
  .nullish()
  .meta({ description: '`idempotency_key` is the dedupe key of a send; everything else is passed on as it is.' })
const historyLength = z
  .int('must be a whole number')
  .min(0, 'must not be negative')
  .max(HISTORY_LENGTH_MAX, `must be at most ${HISTORY_LENGTH_MAX}`)
  .nullish()
const strings = z
  .array(boundedString(URL_CHARACTERS_MAX), 'must be an array of strings')
  .max(LIST_MAX, `must have at most ${LIST_MAX} entries`)
  .nullish()

export const jsonRpcRequestSchema = z.object(
  {
    jsonrpc: z.literal('2.0', { error: ({ input }) => `${input === undefined ? 'is missing; it ' : ''}must be "2.0"` }),
    id: z
      .union([boundedString(ID_CHARACTERS_MAX), z.number(), z.null()], 'must be a string, a number or null')
      .optional(),
    method: boundedString(METHOD_CHARACTERS_MAX).min(1, 'must not be empty'),
    params: z.unknown().optional(),
  },
  'must be a JSON-RPC request object',
)

const part = z.looseObject({}, 'must be an object').meta({
  description: 'One of text, raw (base64), url, data; also 0.3 form (kind) and {type, text, mime_type, uri, data}.',
})

const messageSchema = <Role extends string>(user: Role, agent: Role) =>
  z.object(
    {
      messageId: requiredId,
      contextId: optionalId,
      taskId: optionalId,
      role: z.enum([user, agent], `must be "${user}" or "${agent}"`),
      parts: z
        .array(part, 'must be an array')
        .min(1, 'must not be empty')
        .max(PARTS_MAX, `must have at most ${PARTS_MAX} entries`),
      metadata,
      extensions: strings,
      referenceTaskIds: z
        .array(requiredId, 'must be an array of strings')
        .max(LIST_MAX, `must have at most ${LIST_MAX} entries`)
        .nullish(),
      idempotency_key: optionalId,
    },
    'must be an object',
  )

const inlinePushConfig = <Authentication extends z.ZodType>(authentication: Authentication) =>
  z
    .object(
      {
        id: optionalId,
        url: boundedString(URL_CHARACTERS_MAX).min(1, 'must not be empty'),
        token: boundedString(SECRET_CHARACTERS_MAX).nullish(),
        authentication,
      },
      'must be an object',
    )
    .nullish()

const credentials = boundedString(SECRET_CHARACTERS_MAX).nullish()

/** `SendMessage` and `SendStreamingMessage`. */
export const sendMessageParamsSchema = z.object(
  {
    message: messageSchema('ROLE_USER', 'ROLE_AGENT'),
    configuration: z
      .object(
        {
          acceptedOutputModes: strings,
          returnImmediately: flag,
          historyLength,
          taskPushNotificationConfig: inlinePushConfig(
            z
              .object({ scheme: boundedString(ID_CHARACTERS_MAX).nullish(), credentials }, 'must be an object')
              .nullish(),
          ),
        },
        'must be an object',
      )
      .nullish(),
    metadata,
  },
  'must be an object',
)

/** `message/send` and `message/stream`. */
export const messageSendParamsSchema = z.object(
  {
    message: messageSchema('user', 'agent'),
    configuration: z
      .object(
        {
          acceptedOutputModes: strings,
          blocking: flag,
          historyLength,
          pushNotificationConfig: inlinePushConfig(
            z.object({ schemes: strings, credentials }, 'must be an object').nullish(),
          ),
        },
        'must be an object',
      )
      .nullish(),
    metadata,
  },
  'must be an object',
)

const orUndefined = <Value>(value: Value): NonNullable<Value> | undefined => value ?? undefined

/** For get, cancel and subscribe, in both versions. */
export const taskIdParamsSchema = z.object(
  { id: requiredId, historyLength: historyLength.transform(orUndefined), metadata: metadata.transform(orUndefined) },
  'must be an object',
)

/** `ListTasks`, which 0.3 does not have. In protocol buffers, the unspecified state means any state. */
export const listTasksParamsSchema = z.object(
  {
    contextId: optionalId.transform((id) => id || undefined),
    status: z
      .enum(['TASK_STATE_UNSPECIFIED', ...TASK_STATES], 'must be a task state')
      .nullish()
      .transform((state) => (state === 'TASK_STATE_UNSPECIFIED' ? undefined : (state ?? undefined))),
    pageSize: z
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .max(PAGE_SIZE_MAX, `must be at most ${PAGE_SIZE_MAX}`)
      .nullish()
      .transform(orUndefined),
    pageToken: boundedString(URL_CHARACTERS_MAX)
      .nullish()
      .transform((token) => token || undefined),
    historyLength: historyLength.transform(orUndefined),
    statusTimestampAfter: z.iso
      .datetime({ offset: true, error: 'must be an ISO 8601 time' })
      .nullish()
      .transform(orUndefined),
    includeArtifacts: flag.transform(orUndefined),
  },
  'must be an object',
)

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null

/** `params.message.parts[0]`. */
function formatPath(base: string, path: readonly PropertyKey[]): string {
  let text = base
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += `${text === '' ? '' : '.'}${String(step)}`
  }
  return text === '' ? 'the request' : text
}
