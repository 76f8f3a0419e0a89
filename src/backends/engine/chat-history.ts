/** The history of a conversation as chat messages: for an endpoint without sessions, and for a program of the owner. */
import type { Message } from '../../protocol/a2a.ts'
import { describePart, textOf } from '../../protocol/part.ts'

export interface RoleMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** Messages without content are left out. */
export const chatHistory = (history: readonly Message[] = []): RoleMessage[] =>
  history.map(toChatMessage).filter(({ content }) => content !== '')

function toChatMessage({ role, parts }: Message): RoleMessage {
  const text = textOf(parts)
  // Files of earlier turns are named and not sent again: every turn would pay for them.
  const others = parts.filter((part) => part.text === undefined).map(describePart)
  const content = [...(text === '' ? [] : [text]), ...others].join('\n')
  return { role: role === 'ROLE_AGENT' ? 'assistant' : 'user', content }
}
