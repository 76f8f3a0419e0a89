/**
 * Masks tokens of this platform (`mol_...`) in what agents write: replies, artifacts, status lines. A reader of a reply
 * must not get the token of the agent that wrote it. This prevents accidents, such as an agent that prints its
 * environment; an agent that wants to leak its token can encode it.
 * Invariant: a value without a token is returned as it is, without a copy.
 */

const PREFIX = 'mol_'
/** 32 bytes in base64url are 43 characters; conversation tokens are longer. No `\b`: a text may contain `\nmol_...`. */
const TOKEN = /mol_[\w-]{43,}/g
const HIDDEN = '[hidden]'
/** Deeper values are not searched. JSON from callers has at most 64 levels. */
const LEVELS_MAX = 100

/** The value with every token in its texts masked. */
export function maskTokens<T>(value: T, level = 0): T {
  if (typeof value === 'string') return maskText(value) as T
  if (typeof value !== 'object' || value === null || level >= LEVELS_MAX) return value
  if (Array.isArray(value)) {
    const masked = value.map((item) => maskTokens(item, level + 1))
    return masked.some((item, index) => item !== value[index]) ? (masked as T) : value
  }
  let changed = value
  for (const key in value) {
    const masked = maskTokens(value[key], level + 1)
    if (masked === value[key]) continue
    if (changed === value) changed = { ...value }
    changed[key] = masked
  }
  return changed
}

function maskText(text: string): string {
  // The underscore first: base64 has none, and 8 MB of it take 1 ms to search. With the prefix alone they took 20 ms.
  return text.includes('_') && text.includes(PREFIX) ? text.replace(TOKEN, HIDDEN) : text
}

/** A token has fewer characters. A longer word that begins like a token is masked without waiting for its end. */
const HELD_CHARACTERS_MAX = 512
/** The beginning of what may become a token. */
const OPEN_END = /(?:mol_[\w-]*|\bm(?:ol?)?)$/

/**
 * Masks a text that comes in pieces: a token may begin in one piece and end in the next. It holds back the end of a
 * piece that may be the beginning of a token, and returns it with the next piece.
 */
export function createTokenMask(): (piece: string) => string {
  let held = ''
  return (piece) => {
    const text = held + piece
    // Only the end of the text can be open. The regular expression would search a long text from its beginning.
    const end = text.slice(-HELD_CHARACTERS_MAX)
    const open = OPEN_END.exec(end)?.[0] ?? ''
    held = open.length < HELD_CHARACTERS_MAX ? open : ''
    return maskText(held === '' ? text : text.slice(0, -held.length))
  }
}
