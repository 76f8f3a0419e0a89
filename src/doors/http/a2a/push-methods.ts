/**
 * The push-notification methods of A2A, both versions: a caller sets the URL that receives the events of a task. The URL
 * is checked when it is set, so that the caller sees the refusal, and again at each call by the webhook door. The
 * caller's secrets are stored and never shown; the key of the signatures is shown once, in a header of the answer to
 * the caller that sets the config. The URL itself may be a secret, so only a caller that may end the task sees it.
 */
import { randomBytes } from 'node:crypto'
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
import type { TraceContext } from '../../../protocol/trace-context.ts'
import { grantOf, type Identity, SECRET_BYTES, SECRET_PREFIX } from '../../../workspaces/tokens.ts'

/** In the answer to a call that set a push config: the key of its signatures. */
export const WEBHOOK_SECRET_HEADER = 'X-Molecule-Webhook-Secret'

export interface PushContext {
  readonly configs: PushConfigs
  /** Throws `forbidden` with the reason for a URL that may not be called. A name that cannot be resolved now may. */
  readonly check: (url: string) => Promise<void>
  /** The webhook door polls now. */
  readonly wake: () => void
}

/** What a method needs of the call. */
export interface PushCall {
  readonly params: unknown
  readonly version: ProtocolVersion
  readonly workspaceId: string
  readonly identity: Identity
  /** The number of the task's last row; throws `not_found` for a caller that may not see the task. */
  readonly lastSeq: (taskId: string) => Promise<number>
  /** Of the request; the calls of the webhook continue it. */
  readonly trace: TraceContext | undefined
  /** Adds the key of the signatures to the headers of the answer. */
  readonly showSecret: (secret: string) => void
}

export async function createPush(
  { params, version, workspaceId, identity, lastSeq, trace, showSecret }: PushCall,
  context: PushContext,
): Promise<unknown> {
  const config = toNewConfig(readPushConfig(params, version), trace)
  const afterSeq = await lastSeq(config.taskId)
  await context.check(config.url)
  await context.configs.put({ workspaceId, version, config, afterSeq, setBy: grantOf(identity) })
  context.wake()
  showSecret(config.signingSecret)
  return toPublicPushConfig(config, version)
}

export async function getPush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId, id } = readPushConfigName(call.params, call.version)
  await call.lastSeq(taskId)
  const all = await configs.list(call.workspaceId, taskId)
  const found = id === undefined ? all[0] : all.find((push) => push.id === id)
  if (found === undefined) throw configNotFound(taskId, id)
  return toPublicPushConfig(found.config, call.version)
}

export async function listPush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId } = readPushConfigName(call.params, call.version)
  await call.lastSeq(taskId)
  const all = await configs.list(call.workspaceId, taskId)
  const shown = all.map(({ config }) => toPublicPushConfig(config, call.version))
  return call.version === '1.0' ? { configs: shown, nextPageToken: '' } : shown
}

/** Idempotent: deleting a config that does not exist succeeds. */
export async function deletePush(call: PushCall, { configs }: PushContext): Promise<unknown> {
  const { taskId, id } = readPushConfigName(call.params, call.version)
  if (id === undefined) throw new MoleculeError('invalid_request', 'the id of the push configuration is missing')
  await call.lastSeq(taskId)
  await configs.remove({ workspaceId: call.workspaceId, taskId, id })
  return call.version === '1.0' ? {} : null
}

/**
 * The config that came with a send: checked before the message is admitted, stored afterwards, when the task has an id.
 * No event is missed in between, because webhooks read the log. Undefined where none came.
 */
export async function acceptPush(
  { params, version, workspaceId, identity, trace, showSecret }: Omit<PushCall, 'lastSeq'>,
  context: PushContext | undefined,
): Promise<((taskId: string) => Promise<void>) | undefined> {
  const read = readInlinePushConfig(params, version)
  if (read === undefined) return undefined
  const { configs, check, wake } = requirePush(context)
  await check(read('task').url)
  return async (taskId) => {
    const config = toNewConfig(read(taskId), trace)
    await configs.put({ workspaceId, version, config, afterSeq: 0, setBy: grantOf(identity) })
    wake()
    showSecret(config.signingSecret)
  }
}

export function requirePush(context: PushContext | undefined): PushContext {
  if (context !== undefined) return context
  throw new MoleculeError('unsupported_operation', 'push notifications are not served here')
}

/** Begins like a token of the platform, so that logs and replies hide it. */
const SIGNING_SECRET_PREFIX = `${SECRET_PREFIX}webhook_`

export const newSigningSecret = (): string => SIGNING_SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64url')

/**
 * A config without an id gets the task's id, so that setting it again replaces it. A replaced config gets a new key: the
 * answer that showed the old one may be lost.
 */
const toNewConfig = (config: PushConfig, trace: TraceContext | undefined) => ({
  ...config,
  id: config.id ?? config.taskId,
  signingSecret: newSigningSecret(),
  trace,
})

function configNotFound(taskId: string, id: string | undefined): MoleculeError {
  const which = id === undefined ? 'no push configuration' : `no push configuration ${id}`
  return new MoleculeError('not_found', `task ${taskId} has ${which}`, { details: { taskId } })
}
