/**
 * The Web API of Slack by its library. A call is made once: the door decides about every retry, because it knows what may be
 * doubled. Invariant: a token is sent only to Slack, or to the address that the owner gave in its place.
 */
import type { WebClient } from '@slack/web-api'
import { MoleculeError } from '../../errors.ts'
import { trimEndOf } from '../../trim-end.ts'
import { abortable } from '../../wait.ts'
import type { ChannelOptions } from '../chat/channel.ts'
import { SlackLimit, tokenRefused } from './slack-errors.ts'

const API_URL = 'https://slack.com/api'
const CALL_MS_MAX = 60_000
const RETRY_AFTER_MS = 1000

// biome-ignore lint/suspicious/noExplicitAny: answers of the service; each use reads what it needs
export type SlackAnswer = Record<string, any>

export interface SlackApi {
  /** Rejects with the library's error; `slackOutcome` says what it means. */
  call(method: string, body: object, signal?: AbortSignal): Promise<SlackAnswer>
  /** The end of all calls. */
  close(): void
}

interface Logger {
  readonly debug: () => void
  readonly info: () => void
  readonly warn: () => void
  readonly error: () => void
  readonly setLevel: () => void
  readonly getLevel: () => never
  readonly setName: () => void
}

const ignore = () => undefined
/** The library's own lines have URLs, and URLs of a connection have secrets. */
export const silentLogger: Logger = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  setLevel: ignore,
  getLevel: () => 'error' as never,
  setName: ignore,
}

/** `retries: 0`: the library tries again by itself else. */
export const clientOptions = ({ apiUrl = API_URL }: ChannelOptions, closing: AbortSignal) => ({
  slackApiUrl: `${trimEndOf(apiUrl, '/')}/`,
  retryConfig: { retries: 0 },
  rejectRateLimitedCalls: true,
  allowAbsoluteUrls: false,
  fetch: createFetch(closing),
})

function createFetch(closing: AbortSignal): typeof fetch {
  return async (url, init) => {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(CALL_MS_MAX)])
    // A kept connection may be closed by the service just when a send uses it, and each such send would be unknown.
    const headers = { ...(init?.headers as Record<string, string>), connection: 'close' }
    const response = await fetch(url, { ...init, headers, signal, redirect: 'error' })
    if (response.status !== 429) return response
    await response.body?.cancel()
    const seconds = Number(response.headers.get('retry-after'))
    throw new SlackLimit(seconds > 0 ? seconds * 1000 : RETRY_AFTER_MS)
  }
}

export async function createSlackApi(options: ChannelOptions): Promise<SlackApi> {
  requireTokens(options)
  const { WebClient: Client } = await import('@slack/web-api')
  const closing = new AbortController()
  const client: WebClient = new Client(options.token, {
    ...clientOptions(options, closing.signal),
    logger: silentLogger,
  })
  return {
    call(method, body, signal) {
      const answer = client.apiCall(method, { ...body }) as Promise<SlackAnswer>
      return signal === undefined ? answer : abortable(answer, signal)
    },
    close: () => closing.abort(),
  }
}

export const appTokenOf = ({ settings = {} }: ChannelOptions): string => settings['app_token'] ?? ''

/** The two tokens are easily exchanged. */
function requireTokens(options: ChannelOptions): void {
  if (!isToken(options.token, 'xoxb-')) throw tokenRefused('bot')
  if (!isToken(appTokenOf(options), 'xapp-')) throw tokenRefused('app')
}

const isToken = (token: string, start: string): boolean => token.startsWith(start) && /^[\w-]{10,400}$/.test(token)

/** A file reference and an answer address come from outside: they must not make the platform call another host. */
export function requireSlackHost(url: string, { apiUrl }: ChannelOptions): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isOfSlack =
    parsed?.protocol === 'https:' && (parsed.hostname === 'slack.com' || parsed.hostname.endsWith('.slack.com'))
  const isOfOwner = parsed !== undefined && apiUrl !== undefined && parsed.origin === new URL(apiUrl).origin
  if (parsed === undefined || !(isOfSlack || isOfOwner))
    throw new MoleculeError('forbidden', 'the address is not on a server of Slack')
  return parsed
}
