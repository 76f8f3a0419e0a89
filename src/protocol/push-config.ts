/**
 * The webhook of a task, in the flat form of 1.0, which is also our own, and in the nested form of 0.3. `token` and
 * `authentication` are the caller's secrets, `signingSecret` is ours; they are stored only with the config.
 */
import type { TraceContext } from './trace-context.ts'
import type { V03PushConfig, V03TaskPushConfig } from './v03/v03-types.ts'

export interface PushConfig {
  readonly taskId: string
  readonly id?: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials?: string }
  /** The key of the signatures, made by the platform. Absent in configs of earlier versions, which are not signed. */
  readonly signingSecret?: string
  /** The trace of the request that set it. */
  readonly trace?: TraceContext
}

export function pushConfigToV03(config: PushConfig): V03TaskPushConfig {
  const { taskId, authentication, signingSecret: _ours, trace: _trace, ...flat } = config
  if (authentication === undefined) return { taskId, pushNotificationConfig: flat }
  const { scheme, ...credentials } = authentication
  const schemes = scheme === '' ? [] : [scheme]
  return { taskId, pushNotificationConfig: { ...flat, authentication: { schemes, ...credentials } } }
}

/** Keeps the first of several schemes: 0.3 lists all that the receiver accepts, and a webhook is sent with one. */
export function pushConfigFromV03(config: V03TaskPushConfig): PushConfig {
  const { authentication, ...flat }: V03PushConfig = config.pushNotificationConfig
  if (authentication === undefined) return { ...flat, taskId: config.taskId }
  const { schemes, ...credentials } = authentication
  return { ...flat, taskId: config.taskId, authentication: { scheme: schemes[0] ?? '', ...credentials } }
}
