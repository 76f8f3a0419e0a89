/**
 * Reads the parameters of the push-notification methods of both versions into one form. Answers come from
 * `toPublicPushConfig`, which copies no secret and adds no field of ours.
 */
import { z } from 'zod'
import type { ProtocolVersion } from './envelope.ts'
import { isJsonObject } from './json.ts'
import { type PushConfig, pushConfigToV03 } from './push-config.ts'
import { ID_CHARACTERS_MAX, parseInput, SECRET_CHARACTERS_MAX, URL_CHARACTERS_MAX } from './schemas.ts'

const id = z.string('must be a string').min(1, 'must not be empty').max(ID_CHARACTERS_MAX, 'is too long')
const optionalId = z.string('must be a string').max(ID_CHARACTERS_MAX, 'is too long').nullish()
const url = z.string('must be a string').min(1, 'must not be empty').max(URL_CHARACTERS_MAX, 'is too long')
/** It becomes a header, so a line break in it would allow header injection. */
const secret = z
  .string('must be a string')
  .max(SECRET_CHARACTERS_MAX, 'is too long')
  .regex(/^[\t\x20-\x7e]*$/, 'must be plain ASCII in one line')
  .nullish()
const scheme = z.string('must be a string').regex(/^[\w!#$%&'*+.^`|~-]{0,64}$/, 'must be the name of a scheme')

const flatConfig = z.object(
  {
    taskId: id,
    id: optionalId,
    url,
    token: secret,
    authentication: z.object({ scheme: scheme.nullish(), credentials: secret }, 'must be an object').nullish(),
  },
  'must be an object',
)
const nestedConfig = z.object(
  {
    taskId: id,
    pushNotificationConfig: z.object(
      {
        id: optionalId,
        url,
        token: secret,
        authentication: z
          .object({ schemes: z.array(scheme).max(16).nullish(), credentials: secret }, 'must be an object')
          .nullish(),
      },
      'must be an object',
    ),
  },
  'must be an object',
)

/** For `CreateTaskPushNotificationConfig` and `tasks/pushNotificationConfig/set`. */
export function readPushConfig(params: unknown, version: ProtocolVersion): PushConfig {
  if (version === '1.0') return toPushConfig(parseInput(flatConfig, params, 'params'))
  const { taskId, pushNotificationConfig } = parseInput(nestedConfig, params, 'params')
  const { authentication, ...rest } = pushNotificationConfig
  const [first] = authentication?.schemes ?? []
  return toPushConfig({
    ...rest,
    taskId,
    authentication: authentication && { scheme: first, credentials: authentication.credentials },
  })
}

/** The push config inside a send, if there is one. It is a function, because admission gives the task its id. */
export function readInlinePushConfig(
  params: unknown,
  version: ProtocolVersion,
): ((taskId: string) => PushConfig) | undefined {
  const configuration = isJsonObject(params) ? params['configuration'] : undefined
  if (!isJsonObject(configuration)) return undefined
  const given = configuration[version === '1.0' ? 'taskPushNotificationConfig' : 'pushNotificationConfig']
  if (!isJsonObject(given)) return undefined
  const read = (taskId: string) =>
    readPushConfig(version === '1.0' ? { ...given, taskId } : { taskId, pushNotificationConfig: given }, version)
  // Reads it once now, so that an invalid config is refused before the message is admitted.
  read('task')
  return read
}

/** Which config a call names: `{taskId, id}` in 1.0, `{id, pushNotificationConfigId}` in 0.3. Its id is optional. */
export function readPushConfigName(
  params: unknown,
  version: ProtocolVersion,
): { taskId: string; id: string | undefined } {
  if (version === '1.0') {
    const named = parseInput(z.object({ taskId: id, id: optionalId }, 'must be an object'), params, 'params')
    return { taskId: named.taskId, id: named.id || undefined }
  }
  const named = parseInput(
    z.object({ id, pushNotificationConfigId: optionalId }, 'must be an object'),
    params,
    'params',
  )
  return { taskId: named.id, id: named.pushNotificationConfigId || undefined }
}

/**
 * The config without token and credentials. Only fields of A2A: the official Python SDK refuses an answer with any other
 * field, and with it the whole call.
 */
export function toPublicPushConfig(config: PushConfig, version: ProtocolVersion): object {
  const { taskId, id: name, url: target, authentication } = config
  const shown: PushConfig = {
    taskId,
    ...(name !== undefined && { id: name }),
    url: target,
    ...(authentication !== undefined && { authentication: { scheme: authentication.scheme } }),
  }
  return version === '1.0' ? shown : pushConfigToV03(shown)
}

type FlatPushConfig = z.output<typeof flatConfig>

function toPushConfig({ taskId, id: name, url: target, token, authentication }: FlatPushConfig): PushConfig {
  const credentials = authentication?.credentials
  return {
    taskId,
    ...(name ? { id: name } : {}),
    url: target,
    ...(token ? { token } : {}),
    ...(authentication && {
      authentication: { scheme: authentication.scheme ?? '', ...(credentials ? { credentials } : {}) },
    }),
  }
}
