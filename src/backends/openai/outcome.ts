/** What an endpoint's refusal means: the one table from HTTP status and error code to our error. */
import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, MoleculeError } from '../../errors.ts'
import { isJsonObject } from '../../protocol/json.ts'

const SHOWN_CHARACTERS_MAX = 500

interface Refusal {
  readonly code: string
  readonly message: string
}

export function failureOfStatus(status: number, headers: IncomingHttpHeaders, body: string): MoleculeError {
  const refusal = readRefusal(body)
  const message = `the endpoint answered HTTP ${status}${refusal.message === '' ? '' : `: ${refusal.message}`}`
  const details = { status, ...(refusal.code !== '' && { upstreamCode: refusal.code }) }
  const [code, retryable] = classifyRefusal(status, refusal)
  const resetAfterMs = retryable ? retryAfterMs(headers) : undefined
  return new MoleculeError(code, message, {
    retryable,
    details: { ...details, ...(resetAfterMs !== undefined && { resetAfterMs }) },
  })
}

/** From an `error` in the middle of a stream, which has no status. */
export function failureInStream(error: unknown): MoleculeError {
  const { code, message } = readRefusal(JSON.stringify({ error }))
  const [ours, retryable] = classifyRefusal(Number(code) || statusOfCode(code), { code, message })
  return new MoleculeError(ours, `the endpoint broke off: ${message}`, { retryable, details: { upstreamCode: code } })
}

/** A conversation that the model cannot hold: worth another try with less of it. */
export const isContextFull = ({ code }: MoleculeError): boolean => code === 'context_full'

function classifyRefusal(status: number, { code, message }: Refusal): [ErrorCode, boolean] {
  if (/context_length|context window|maximum context/i.test(`${code} ${message}`)) return ['context_full', false]
  // Asking again does not fill an account.
  if (code === 'insufficient_quota') return ['rate_limited', false]
  if (status === 401 || status === 403) return ['auth_failed', false]
  if (status === 413) return ['too_large', false]
  if (status === 429 || status === 529) return ['rate_limited', true]
  if (status === 408 || status >= 500) return ['provider_failed', true]
  // This one is for whoever asked to know; what is wrong with a request otherwise is the owner's set-up.
  return /content_(policy|filter)/.test(code) ? ['agent_failed', false] : ['bad_config', false]
}

/** What a stream's error is called where an answer would have had a status. */
function statusOfCode(code: string): number {
  if (/rate_limit|overloaded/.test(code)) return 429
  if (/auth|api_key/.test(code)) return 401
  return 500
}

function readRefusal(body: string): Refusal {
  try {
    const value: unknown = JSON.parse(body)
    const error = isJsonObject(value) ? (value['error'] ?? value) : value
    if (typeof error === 'string') return { code: '', message: truncate(error) }
    if (!isJsonObject(error)) return { code: '', message: '' }
    return { code: String(error['code'] ?? error['type'] ?? ''), message: truncate(String(error['message'] ?? '')) }
  } catch {
    // A proxy in between speaks HTML; its markup helps nobody.
    return { code: '', message: body.trimStart().startsWith('<') ? '' : truncate(body.trim()) }
  }
}

const truncate = (text: string): string =>
  text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}...` : text

/** Seconds, milliseconds or a date, as the provider likes to say it. */
function retryAfterMs(headers: IncomingHttpHeaders): number | undefined {
  const millis = Number(headers['retry-after-ms'])
  if (headers['retry-after-ms'] !== undefined && millis >= 0) return millis
  const text = headers['retry-after']
  if (text === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}
