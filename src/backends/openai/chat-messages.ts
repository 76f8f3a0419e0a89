/** Turns a turn into chat messages: the system prompt, the history, the new message. Pure. */
import type { Part } from '../../protocol/a2a.ts'
import { describePart, fromRequestPart } from '../../protocol/part.ts'
import type { Turn } from '../backend.ts'
import { chatHistory } from '../engine/chat-history.ts'

export type ChatContent =
  | string
  | readonly (
      | { readonly type: 'text'; readonly text: string }
      | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
    )[]

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: ChatContent
}

export function chatMessages(turn: Turn): ChatMessage[] {
  const system: ChatMessage[] = turn.systemPrompt === '' ? [] : [{ role: 'system', content: turn.systemPrompt }]
  const before = chatHistory(turn.history)
  const files = turn.request.parts.filter(({ type }) => type !== 'text').map((part) => fromRequestPart(part))
  return [...system, ...before, { role: 'user', content: toContent(turn.prompt, files) }]
}

/** The messages without the older half of the history; undefined if there is no history. */
export function withoutOldestHalf(messages: readonly ChatMessage[]): ChatMessage[] | undefined {
  const first = messages[0]?.role === 'system' ? 1 : 0
  const before = messages.length - 1 - first
  if (before === 0) return undefined
  return [...messages.slice(0, first), ...messages.slice(first + Math.ceil(before / 2))]
}

/** Plain text if there is nothing else: every endpoint takes text, not every endpoint takes lists. */
function toContent(prompt: string, others: readonly Part[]): ChatContent {
  if (others.length === 0) return prompt
  const images = others.filter(isImage)
  const text = [prompt, ...others.filter((part) => !isImage(part)).map(describePart)]
    .filter((line) => line !== '')
    .join('\n')
  if (images.length === 0) return text
  const imageParts = images.map((part) => ({ type: 'image_url', image_url: { url: imageUrl(part) } }) as const)
  return [...(text === '' ? [] : [{ type: 'text', text } as const]), ...imageParts]
}

const isImage = ({ mediaType, raw, url }: Part): boolean =>
  /^image\/[\w.+-]+$/.test(mediaType ?? '') && (raw !== undefined || url !== undefined)

const imageUrl = ({ mediaType, raw, url }: Part): string => url ?? `data:${mediaType};base64,${raw}`
