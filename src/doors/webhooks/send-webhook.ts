/**
 * Sends one event of a task to the URL of a caller. The URL is not trusted, so each call goes through the outbound
 * guard. The caller's secrets are only in the headers.
 */
import type { Outbound, OutboundRequest } from '../../client/outbound.ts'
import { toMoleculeError } from '../../errors.ts'
import type { StoredPush } from '../../inbox/delivery.ts'
import type { StreamResponse, Task } from '../../protocol/a2a.ts'
import { taskToV03 } from '../../protocol/v03/v03.ts'
import { SIGNATURE_HEADER, signWebhook } from './signature.ts'

const WEBHOOK_TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 64 * 1024

export interface SendWebhookInput {
  readonly push: StoredPush
  readonly event: StreamResponse
  /** The task after the event, which is what 0.3 sends. */
  readonly task: Task
  readonly nowMs: number
}

/** Undefined when the receiver accepted the event; otherwise the reason, in a sentence without secrets. */
export async function sendWebhook(
  input: SendWebhookInput,
  outbound: Outbound,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const answer = await outbound.send(webhookRequest(input), signal)
    answer.discard()
    if (answer.status >= 200 && answer.status < 300) return undefined
    return `the receiver answered HTTP ${answer.status}`
  } catch (thrown) {
    return toMoleculeError(thrown).message
  }
}

/** In the form of the receiver's version: 1.0 has the event and its own media type, 0.3 the task. */
function webhookRequest({ push: { version, config }, event, task, nowMs }: SendWebhookInput): OutboundRequest {
  const { url, token, authentication, signingSecret: secret, trace } = config
  const { scheme = '', credentials = '' } = authentication ?? {}
  const body = JSON.stringify(version === '1.0' ? event : taskToV03(task))
  const headers = {
    'Content-Type': version === '1.0' ? 'application/a2a+json' : 'application/json',
    'A2A-Version': version,
    ...(scheme !== '' && { Authorization: credentials === '' ? scheme : `${scheme} ${credentials}` }),
    ...(token !== undefined && { 'X-A2A-Notification-Token': token }),
    ...trace,
    ...(secret !== undefined && { [SIGNATURE_HEADER]: signWebhook(body, { secret, nowMs }) }),
  }
  return { url, method: 'POST', headers, body, totalMs: WEBHOOK_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX }
}
