/** The result of a turn as a chat sees it (GW-3): an answer or an error, and the place that it is for. */
import type { DeliveryBody } from '../../../inbox/delivery.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { publicReason } from '../../../views/public-reason.ts'

/** The result of a backend: text, session, and whether it failed. */
export interface BackendResult {
  readonly responseText?: string
  readonly sessionId?: string
  readonly isError: boolean
}

/** Has an error or an answer, never both. */
export interface ChatResult {
  readonly targetChannelId: string
  readonly error?: string
  readonly responseText?: string
  readonly sessionId?: string
}

export function mapResult({ isError, responseText, sessionId }: BackendResult, targetChannelId: string): ChatResult {
  if (isError) return { targetChannelId, error: responseText ?? 'the agent gave no reason' }
  return {
    targetChannelId,
    ...(responseText !== undefined && { responseText }),
    ...(sessionId !== undefined && { sessionId }),
  }
}

/** Of a stored reply. Its session was stored with it, for the conversation of the place. */
export function toChatResult({ state, parts = [] }: DeliveryBody, targetChannelId: string): ChatResult {
  const isError = state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED'
  const text = textOf(parts)
  // A failure may name a program or a folder by its path, and everybody in the chat reads it.
  return mapResult({ isError, responseText: isError ? publicReason(text) : text }, targetChannelId)
}

/** Texts are joined; data is a block of JSON; a file elsewhere is its address. */
function textOf(parts: readonly Part[]): string {
  const texts = parts.map(({ text, data, url, filename }) => {
    if (text !== undefined) return text
    if (data !== undefined) return `\n\n\`\`\`json\n${JSON.stringify(data, null, 2)}\n\`\`\`\n`
    if (url !== undefined) return `\n${filename ?? 'file'}: ${url}\n`
    return ''
  })
  return texts.join('').trim()
}
