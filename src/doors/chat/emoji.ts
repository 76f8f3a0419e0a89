/** The reactions that mean something to the chat door. Channels give no others: in a large group nearly all are for people. */

export const ALLOW_SIGN = '👍'
export const REFUSE_SIGN = '👎'
export const STOP_SIGN = '🛑'

/** The sign that an emoji is, whatever its tone of the skin and its form; undefined for all others. */
export function signOf(emoji: string): string | undefined {
  const plain = emoji.replaceAll(/[\u{1f3fb}-\u{1f3ff}\ufe0f]/gu, '')
  return [ALLOW_SIGN, REFUSE_SIGN, STOP_SIGN].find((sign) => sign === plain)
}
