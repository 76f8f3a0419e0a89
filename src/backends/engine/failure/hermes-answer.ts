/**
 * Failures that hermes reports as the text of its answer, one-shot and over ACP: a provider's error, or a sentence that
 * stands for an empty answer. Pure. The pattern of an HTTP error counts only for an answer that no model wrote.
 */
import { MoleculeError } from '../../../errors.ts'
import { providerError } from './agent-errors.ts'

/** The name under which hermes greets over ACP. */
export const HERMES_ACP_NAME = 'hermes-agent'

export interface HermesAnswer {
  readonly text: string
  /** Tokens that the model wrote in this turn; undefined if hermes does not say. */
  readonly outputTokens: number | undefined
  readonly nowMs: number
}

const GAVE_UP = /^\s*API call failed after \d+ (?:retries|attempts): /
const HTTP_ERROR = /^\s*(?:API call failed after \d+ (?:retries|attempts): )?HTTP ([45]\d\d)\b/
const NO_REPLY = /^\s*\u26a0\ufe0f?\s*No reply: /

/** Undefined for an answer of the model. */
export function errorInHermesAnswer({ text, outputTokens, nowMs }: HermesAnswer): MoleculeError | undefined {
  if (NO_REPLY.test(text)) {
    return new MoleculeError('empty_response', `hermes gave no reply: ${text.trim()}`, { retryable: true })
  }
  // Without this check an answer to "what is HTTP 404?" would be a failure.
  const isByModel = (outputTokens ?? 0) > 0 && !GAVE_UP.test(text)
  const status = HTTP_ERROR.exec(text)?.[1]
  if (isByModel || (status === undefined && !GAVE_UP.test(text))) return undefined
  return providerError('hermes', {
    text: text.trim(),
    status: status === undefined ? undefined : Number(status),
    nowMs,
  })
}
