/** The connection of the Telegram channel to the Bot API, by grammY. */
import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import type { Api } from 'grammy'
import { trimEndOf } from '../../trim-end.ts'
import type { ChannelOptions } from '../chat/channel.ts'
import { connectError, isTokenText, tokenRefused } from './telegram-errors.ts'

export type TelegramLibrary = typeof import('grammy')

const API_URL = 'https://api.telegram.org'
const CALL_S = 60

/** A kept connection may be closed by the service just when a send uses it, and each such send would be `unknown`. */
export function createApi(options: ChannelOptions, { Api: TelegramApi }: TelegramLibrary): Api {
  if (!isTokenText(options.token)) throw tokenRefused()
  const root = apiRoot(options)
  const agent = root.startsWith('https:') ? new SecureAgent({ keepAlive: false }) : new Agent({ keepAlive: false })
  return new TelegramApi(options.token, {
    apiRoot: root,
    timeoutSeconds: CALL_S,
    baseFetchConfig: { agent, compress: true },
  })
}

export function apiRoot({ apiUrl = API_URL }: ChannelOptions): string {
  return trimEndOf(apiUrl, '/')
}

export async function getAccount(api: Api, signal: AbortSignal) {
  return await api.getMe(abortSignal(signal)).catch((error: unknown) => {
    throw connectError(error)
  })
}

/** The library's type of a signal is that of an older package. */
export function abortSignal(signal: AbortSignal) {
  return signal as Parameters<Api['getMe']>[0]
}
