/**
 * The push-notification methods of A2A, both versions: where a caller wants to be told of a task. The URL is judged when
 * it is set, so that a refusal reaches whoever gave it, and again at each call by the webhook door. Secrets are taken
 * and never shown again, and a webhook's URL may be one: only whoever may end the task sees it.
 */
import { MoleculeError } from '../../../errors.ts'
import type { PushConfigs } from '../../../inbox/delivery.ts'
import type { ProtocolVersion } from '../../../protocol/envelope.ts'
import type { PushConfig } from '../../../protocol/push-config.ts'
import {
  readInlinePushConfig,
  readPushConfig,
  readPushConfigName,
  toPublicPushConfig,
} from '../../../protocol/read-push-config.ts'

export interface PushContext {
  readonly configs: PushConfigs
  /** Throws `forbidden` with the reason for a URL that may not be called. */
  readonly check: (url: string) => Promise<void>
  /** Webhooks look for work now. */
  readonly wake: () => void
}

/** What a method needs of the call; `seq` gives the task's last entry and throws `not_found` to strangers. */
export interface PushCall {
  readonly params: unknown
  readonly version: ProtocolVersion
  readonly workspaceId: string
  readonly seq: (taskId: string) => Promise<number>
}

export async function createPush(
  { params, version, workspaceId, seq }: PushCall,
  context: PushContext,
): Promise<unknown> {
  const config = withId(readPushConfig(params, version))
  const afterSeq = await seq(config.taskId)
  await context.check(config.url)
  const { failed } = await context.configs.put({ workspaceId, version, config, afterSeq })
  context.wake()
  return toPublicPushConfig(config, version, failed)
}

export async function getPush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId, id } = readPushConfigName(call.params, call.version)
  await call.seq(taskId)
  const all = await configs.list(call.workspaceId, taskId)
  const found = id === undefined ? all[0] : all.find((push) => push.id === id)
  if (found === undefined) throw configNotFound(taskId, id)
  return toPublicPushConfig(found.config, call.version, found.failed)
}

export async function listPush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId } = readPushConfigName(call.params, call.version)
  await call.seq(taskId)
  const all = await configs.list(call.workspaceId, taskId)
  const shown = all.map(({ config, failed }) => toPublicPushConfig(config, call.version, failed))
  return call.version === '1.0' ? { configs: shown, nextPageToken: '' } : shown
}

/** Again is the same answer: what is gone is gone. */
export async function deletePush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId, id } = readPushConfigName(call.params, call.version)
  if (id === undefined) throw new MoleculeError('invalid_request', 'the id of the push configuration is missing')
  await call.seq(taskId)
  await configs.remove({ workspaceId: call.workspaceId, taskId, id })
  return call.version === '1.0' ? {} : null
}

/**
 * The configuration that came with a send: judged before the message is admitted, kept after, when its task has a
 * name. Nothing is missed in between, because webhooks are told from the log. Undefined where none came.
 */
export async function acceptPush(
  { params, version, workspaceId }: Omit<PushCall, 'seq'>,
  context: PushContext | undefined,
): Promise<((taskId: string) => Promise<void>) | undefined> {
  const read = readInlinePushConfig(params, version)
  if (read === undefined) return undefined
  const { configs, check, wake } = requirePush(context)
  await check(read('task').url)
  return async (taskId) => {
    await configs.put({ workspaceId, version, config: withId(read(taskId)), afterSeq: 0 })
    wake()
  }
}

export function requirePush(context: PushContext | undefined): PushContext {
  if (context !== undefined) return context
  throw new MoleculeError('unsupported_operation', 'push notifications are not served here')
}

/** Without an id it has its task's, so that setting it again replaces it. */
const withId = (config: PushConfig) => ({ ...config, id: config.id ?? config.taskId })

function configNotFound(taskId: string, id: string | undefined): MoleculeError {
  const which = id === undefined ? 'no push configuration' : `no push configuration ${id}`
  return new MoleculeError('not_found', `task ${taskId} has ${which}`, { details: { taskId } })
}
