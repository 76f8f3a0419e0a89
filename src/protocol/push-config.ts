/**
 * Where a caller wants to be told of a task's events: 1.0's flat form, which is ours, and 0.3's, which nests it.
 * `token` and `authentication` are the caller's secrets: they are kept with the config and nowhere else.
 */
import type { V03PushConfig, V03TaskPushConfig } from './v03-types.ts'

export interface PushConfig {
  readonly taskId: string
  readonly id?: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials?: string }
}

export function pushConfigToV03(config: PushConfig): V03TaskPushConfig {
  const { taskId, authentication, ...flat } = config
  if (authentication === undefined) return { taskId, pushNotificationConfig: flat }
  const { scheme, ...credentials } = authentication
  const schemes = scheme === '' ? [] : [scheme]
  return { taskId, pushNotificationConfig: { ...flat, authentication: { schemes, ...credentials } } }
}

/** Of several schemes the first is kept: 0.3 lists what the receiver takes, and a webhook is sent with one. */
export function pushConfigFromV03(config: V03TaskPushConfig): PushConfig {
  const { authentication, ...flat }: V03PushConfig = config.pushNotificationConfig
  if (authentication === undefined) return { ...flat, taskId: config.taskId }
  const { schemes, ...credentials } = authentication
  return { ...flat, taskId: config.taskId, authentication: { scheme: schemes[0] ?? '', ...credentials } }
}
