/** The answer of an agent that has nothing to say, where a person did not speak to it alone: in a group, to a schedule. */

const NO_REPLY = 'NO_REPLY'

/** The whole answer is that word. */
export const isNoReply = (parts: readonly { readonly text?: string }[] = []): boolean =>
  parts.every(({ text }) => text !== undefined) &&
  parts
    .map(({ text = '' }) => text)
    .join('')
    .trim() === NO_REPLY

/** The text so far may become that word. */
export const mayBeNoReply = (text: string): boolean => NO_REPLY.startsWith(text.slice(0, 1000).trim())

/** The beginning of an answer that may still become that word: it is not shown while it grows. */
export const mayBecomeNoReply = (text: string): boolean => NO_REPLY.startsWith(text.trim())
