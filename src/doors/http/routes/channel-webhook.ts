/**
 * A call of a chat service to a channel. The caller has no token, so it is counted by its address before anything is looked up,
 * and its body is read only for a channel that is connected here and takes webhooks.
 * Invariant: the answer of a channel never runs as a page of the platform, whatever text of the caller it repeats.
 */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { WebhookAnswer } from '../../chat/channel.ts'
import { BODY_BYTES_MAX, readBody } from '../server/body.ts'
import type { AppContext, HttpEnv } from './route.ts'

interface WebhookRouteCall {
  readonly context: Context<HttpEnv>
  readonly params: { readonly channel: string }
}

type WebhookContext = Pick<AppContext, 'chat' | 'auth' | 'addresses' | 'webhookLimit'>

export async function answerWebhook(
  { context, params: { channel } }: WebhookRouteCall,
  { chat, auth, addresses, webhookLimit }: WebhookContext,
): Promise<Response> {
  const { incoming, outgoing } = context.env
  webhookLimit.count(addresses.callerAddress(incoming))
  const answer = chat.findWebhook(channel)
  if (answer === undefined) throw new MoleculeError('not_found', 'no channel of this name takes webhooks here')
  const body = await readBody(incoming, BODY_BYTES_MAX, auth.openBody(undefined, incoming))
  const gone = new AbortController()
  const leave = () => gone.abort(new MoleculeError('canceled', 'the caller of the webhook disconnected'))
  outgoing.once('close', leave)
  try {
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(', ') : (value ?? ''),
      ]),
    )
    const { search } = new URL(context.req.url)
    return toResponse(await answer({ body, headers, query: search.slice(1) }, gone.signal))
  } finally {
    outgoing.off('close', leave)
  }
}

const HEADER_NAME = /^(?:content-type|retry-after|x-[a-z0-9-]{1,60})$/
const HEADER_VALUE = /^[\x20-\x7e]{0,500}$/

function toResponse({ status, headers = {}, body = '' }: WebhookAnswer): Response {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new MoleculeError('internal', `the channel answered a webhook with the status ${status}`)
  const sent = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), String(value)] as const)
    .filter(([name, value]) => HEADER_NAME.test(name) && HEADER_VALUE.test(value))
  return new Response([204, 205, 304].includes(status) ? null : body, {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      ...Object.fromEntries(sent),
      'content-security-policy': "default-src 'none'; sandbox",
    },
  })
}
