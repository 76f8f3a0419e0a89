/** Turns a refusal of the endpoint into our error: the one table from HTTP status and error code. */

import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, MoleculeError } from '../../errors.ts'
import { isJsonObject } from '../../protocol/json.ts'
import { shorten } from '../../truncate.ts'
import { agentReason } from '../engine/failure/agent-errors.ts'

/** Characters of the endpoint's message in ours; the rest is cut off. */
const SHOWN_CHARACTERS_MAX = 500

interface Refusal {
  readonly code: string
  readonly message: string
}

export function failureOfStatus(
  { status, headers }: { readonly status: number; readonly headers: IncomingHttpHeaders },
  body: string,
  nowMs: number,
): MoleculeError {
  const refusal = readRefusal(body)
  const message = `the endpoint answered HTTP ${status}${refusal.message === '' ? '' : `: ${refusal.message}`}`
  const details = { status, ...(refusal.code !== '' && { upstreamCode: refusal.code }) }
  if (CONTENT_REFUSED.test(refusal.code)) return contentRefused()
  const [code, retryable] = classifyRefusal(status, refusal)
  const resetAfterMs = retryable ? retryAfterMs(headers, nowMs) : undefined
  return new MoleculeError(code, message, {
    retryable,
    details: { ...details, ...(resetAfterMs !== undefined && { resetAfterMs }) },
  })
}

/** An `error` in the middle of a stream, which has no status. */
export function failureInStream(error: unknown): MoleculeError {
  const { code, message } = readRefusal(JSON.stringify({ error }))
  if (CONTENT_REFUSED.test(code)) return contentRefused()
  const [ours, retryable] = classifyRefusal(Number(code) || statusOfCode(code), { code, message })
  return new MoleculeError(ours, `the endpoint stopped with an error: ${message}`, {
    retryable,
    details: { upstreamCode: code },
  })
}

/** The conversation is too long for the model: it is sent again with less history. */
export const isContextFull = ({ code }: MoleculeError): boolean => code === 'context_full'

function classifyRefusal(status: number, { code, message }: Refusal): [ErrorCode, boolean] {
  if (/context_length|context window|maximum context/i.test(`${code} ${message}`)) return ['context_full', false]
  // A retry does not add credit to the account.
  if (code === 'insufficient_quota') return ['quota_exhausted', false]
  if (status === 401 || status === 403) return ['auth_failed', false]
  if (status === 413) return ['too_large', false]
  if (status === 429 || status === 529) return ['rate_limited', true]
  if (status === 408 || status >= 500) return ['provider_failed', true]
  // Any other bad request comes from the owner's settings.
  return ['bad_config', false]
}

const CONTENT_REFUSED = /content_(policy|filter)/

/** Concerns the caller, in our words: those of the endpoint may name its deployment. */
const contentRefused = (): MoleculeError => agentReason("the provider's content filter refused the message")

/** The HTTP status that fits the error code of a stream. */
function statusOfCode(code: string): number {
  if (/rate_limit|overloaded/.test(code)) return 429
  if (/auth|api_key/.test(code)) return 401
  return 500
}

function readRefusal(body: string): Refusal {
  try {
    const value: unknown = JSON.parse(body)
    const error = isJsonObject(value) ? (value['error'] ?? value) : value
    if (typeof error === 'string') return { code: '', message: shorten(error, SHOWN_CHARACTERS_MAX) }
    if (!isJsonObject(error)) return { code: '', message: '' }
    return {
      code: String(error['code'] ?? error['type'] ?? ''),
      message: shorten(String(error['message'] ?? ''), SHOWN_CHARACTERS_MAX),
    }
  } catch {
    // A proxy between us and the endpoint answers HTML, which is not worth showing.
    return { code: '', message: body.trimStart().startsWith('<') ? '' : shorten(body.trim(), SHOWN_CHARACTERS_MAX) }
  }
}

/** Providers give seconds, milliseconds or a date. */
function retryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const millis = Number(headers['retry-after-ms'])
  if (headers['retry-after-ms'] !== undefined && millis >= 0) return millis
  const text = headers['retry-after']
  if (text === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
