/** A turn as chat messages: the system prompt, what was said before, what is said now. Pure. */
import type { Message, Part } from '../../protocol/a2a.ts'
import { fromRequestPart } from '../../protocol/part.ts'
import type { Turn } from '../backend.ts'

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
  const before = (turn.history ?? []).map(fromHistory).filter(({ content }) => content !== '')
  const files = turn.request.parts.filter(({ type }) => type !== 'text').map((part) => fromRequestPart(part))
  return [...system, ...before, { role: 'user', content: toContent(turn.prompt, files) }]
}

/** Half of what was said before, without its older half; undefined when there is nothing left to leave out. */
export function withoutOldestHalf(messages: readonly ChatMessage[]): ChatMessage[] | undefined {
  const first = messages[0]?.role === 'system' ? 1 : 0
  const before = messages.length - 1 - first
  if (before === 0) return undefined
  return [...messages.slice(0, first), ...messages.slice(first + Math.ceil(before / 2))]
}

function fromHistory({ role, parts }: Message): ChatMessage {
  const text = parts.map((part) => part.text ?? '').join('')
  // Pictures of earlier turns are named, not sent again: they would be paid for at every turn.
  const others = parts.filter((part) => part.text === undefined).map(describePart)
  const content = [...(text === '' ? [] : [text]), ...others].join('\n')
  return { role: role === 'ROLE_AGENT' ? 'assistant' : 'user', content }
}

/** Plain text where there is nothing else: every endpoint understands that, and not every one understands lists. */
function toContent(prompt: string, others: readonly Part[]): ChatContent {
  if (others.length === 0) return prompt
  const images = others.filter(isImage)
  const text = [prompt, ...others.filter((part) => !isImage(part)).map(describePart)]
    .filter((line) => line !== '')
    .join('\n')
  if (images.length === 0) return text
  const pictures = images.map((part) => ({ type: 'image_url', image_url: { url: imageUrl(part) } }) as const)
  return [...(text === '' ? [] : [{ type: 'text', text } as const]), ...pictures]
}

const isImage = ({ mediaType, raw, url }: Part): boolean =>
  /^image\/[\w.+-]+$/.test(mediaType ?? '') && (raw !== undefined || url !== undefined)

const imageUrl = ({ mediaType, raw, url }: Part): string => url ?? `data:${mediaType};base64,${raw}`

/** What a model that reads text can know of a part that is none. */
function describePart(part: Part): string {
  if (part.data !== undefined) return JSON.stringify(part.data)
  const what = [part.filename, part.mediaType, part.url].filter((word) => word !== undefined).join(', ')
  return `[attached file${what === '' ? '' : `: ${what}`}]`
}
