/**
 * Field names of A2A requests in JSON of protocol buffers: each field has two names, `taskId` and `task_id`, and a
 * sender may use either. Our code knows only the first, so the door renames the fields of a request once, before
 * anything reads it. Metadata and data are the sender's own and keep their names. Parts are read in all forms by part.ts.
 */
import { invalidRequest } from './invalid-request.ts'
import { isJsonObject, type JsonObject } from './json.ts'

/** The params with camelCase names; the same object if it has them already. Absent params are empty params. */
export function withCamelCase(params: unknown): unknown {
  if (params === undefined || params === null) return {}
  return isJsonObject(params) ? renameFields(params, PARAMS) : params
}

interface FieldTree {
  /** Fields whose two names differ. */
  readonly names: readonly string[]
  /** Fields that are objects with such fields. */
  readonly nested?: Readonly<Record<string, FieldTree>>
}

const PUSH_CONFIG: FieldTree = { names: ['taskId'] }

/** The params of all methods together: no name means two things. */
const PARAMS = compile('params', {
  names: [
    ...['taskId', 'contextId', 'historyLength', 'pageSize', 'pageToken', 'statusTimestampAfter', 'includeArtifacts'],
    ...['pushNotificationConfig', 'pushNotificationConfigId'],
  ],
  nested: {
    message: { names: ['messageId', 'contextId', 'taskId', 'referenceTaskIds'] },
    configuration: {
      names: [
        ...['acceptedOutputModes', 'historyLength', 'returnImmediately'],
        ...['taskPushNotificationConfig', 'pushNotificationConfig'],
      ],
      nested: { taskPushNotificationConfig: PUSH_CONFIG, pushNotificationConfig: PUSH_CONFIG },
    },
    pushNotificationConfig: PUSH_CONFIG,
  },
})

interface FieldNames {
  /** The object's place in the request, for errors: `params.message`. */
  readonly path: string
  /** From `task_id` to `taskId`. */
  readonly camelCase: ReadonlyMap<string, string>
  readonly nested: readonly (readonly [field: string, names: FieldNames])[]
}

function compile(path: string, { names, nested = {} }: FieldTree): FieldNames {
  const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return {
    path,
    camelCase: new Map(names.map((name) => [snakeCase(name), name])),
    nested: Object.entries(nested).map(([field, tree]) => [field, compile(`${path}.${field}`, tree)]),
  }
}

/** Copies only what it renames: every message passes here. */
function renameFields(object: JsonObject, names: FieldNames): JsonObject {
  let renamed = object
  for (const key in object) {
    if (!names.camelCase.has(key)) continue
    renamed = withOneName(object, names)
    break
  }
  for (const [field, namesOfField] of names.nested) {
    const value = renamed[field]
    if (!isJsonObject(value)) continue
    const inner = renameFields(value, namesOfField)
    if (inner !== value) renamed = { ...renamed, [field]: inner }
  }
  return renamed
}

function withOneName(object: JsonObject, { path, camelCase }: FieldNames): JsonObject {
  const entries = Object.entries(object).map(([key, value]): [string, unknown] => {
    const name = camelCase.get(key) ?? key
    // Prevents a silent choice between two values.
    if (name !== key && Object.hasOwn(object, name)) throw invalidRequest(`${path}.${key}`, `is also sent as ${name}`)
    return [name, value]
  })
  return Object.fromEntries(entries)
}
