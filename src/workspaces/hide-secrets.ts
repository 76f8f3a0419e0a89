/**
 * The settings of a workspace as people, exports and other programs see them: without secrets. A secret is found by the
 * name of its key, by its place (an environment, a header), by the flag or the name before it in a command, and by its
 * form. JSON text inside a setting is read and hidden in the same way; JSON that cannot be read is hidden whole.
 * Invariant: a value without a secret is shown as it is stored, and the same value is always shown alike.
 */
import { maskPatterns } from '../log.ts'
import type { Json } from '../protocol/a2a.ts'
import { HIDDEN_SECRET } from './workspace.ts'

/** Longer texts are hidden whole. */
const TEXT_CHARACTERS_MAX = 64 * 1024
/** JSON inside JSON, a command inside a command. Deeper ones are hidden whole. */
const LEVELS_MAX = 4

const SECRET_KEY = /token|key|secret|passw|pwd|credential|authorization|cookie|headers/i
/** The variables of an environment have any name, so a secret one cannot be recognised. */
const ENVIRONMENT_KEY = /^(?:env|environment|env_vars)$/i

/** Numbers and booleans under the key of a secret (`max_tokens: 4096`) are not secrets. */
export function hideSecrets(value: Json, key = '', level = 0): Json {
  // A header has any name its author chose as well.
  if (key === 'headers' && value !== null && value !== '') return HIDDEN_SECRET
  if (ENVIRONMENT_KEY.test(key)) return hideAll(value)
  if (typeof value === 'string') return hideInString(value, key, level)
  if (Array.isArray(value)) return hideInList(value, key, level)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hideSecrets(item, name, level)]))
  }
  return value
}

/** True where a value or a part of it is hidden. */
export const holdsHidden = (value: unknown): boolean => JSON.stringify(value ?? null).includes(HIDDEN_SECRET)

/** Every text below an environment. */
function hideAll(value: Json): Json {
  if (Array.isArray(value)) return value.map(hideAll)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hideAll(item)]))
  }
  return typeof value === 'string' ? hideValue(value) : value
}

/** An empty value is no secret, nor is a variable that the program reads itself: `$GITHUB_TOKEN`. */
const hideValue = (text: string): string =>
  text === '' || /^\$(?:\w{1,100}|\{\w{1,100}\})$/.test(text) ? text : HIDDEN_SECRET

/** Items may be arguments: the one after `--token` is a secret. */
function hideInList(items: readonly Json[], key: string, level: number): Json {
  return items.map((item, index) => {
    const before = items[index - 1]
    const isAfterFlag = typeof before === 'string' && announcesSecret(before)
    return typeof item === 'string' && isAfterFlag ? hideArgument(item) : hideSecrets(item, key, level)
  })
}

function hideInString(text: string, key: string, level: number): string {
  if (SECRET_KEY.test(key)) return hideValue(text)
  if (text.length > TEXT_CHARACTERS_MAX) return HIDDEN_SECRET
  return /^\s{0,100}(?:\{\s{0,100}["}]|\[\s{0,100}["[{\]])/.test(text)
    ? hideInJson(text, level)
    : hideInText(text, level)
}

function hideInJson(text: string, level: number): string {
  if (level >= LEVELS_MAX) return HIDDEN_SECRET
  try {
    const value = JSON.parse(text) as Json
    const shown = hideSecrets(value, '', level + 1)
    return holdsHidden(shown) ? JSON.stringify(shown) : text
  } catch {
    return HIDDEN_SECRET
  }
}

/** Most settings are one short word; the search for secrets in words costs more than the whole view of a workspace. */
const MAY_HOLD_SECRET = /[=:@]|-|bearer|basic|[\w+/]{16}/i

function hideInText(text: string, level: number): string {
  if (!MAY_HOLD_SECRET.test(text)) return text
  let isAnnounced = false
  let shown = ''
  for (const piece of splitWords(text)) {
    if (piece.trim() === '') shown += piece
    else {
      shown += isAnnounced ? hideArgument(piece) : hideInWord(piece, level)
      isAnnounced = announcesSecret(piece)
    }
  }
  return maskPatterns(shown)
}

/** Words and the spaces between them, in order. A quoted part belongs to its word. */
function splitWords(text: string): string[] {
  const pieces: string[] = []
  let start = 0
  let quote = ''
  let wasSpace = isSpace(text[0])
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string
    const space = quote === '' && isSpace(character)
    if (space !== wasSpace) {
      pieces.push(text.slice(start, at))
      start = at
      wasSpace = space
    }
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === '"' || character === "'") quote = character
  }
  pieces.push(text.slice(start))
  return pieces
}

const isSpace = (character: string | undefined): boolean => character !== undefined && /\s/.test(character)

const SECRET_NAME = /token|key|secret|passw|pwd|credential|auth|bearer|cookie|header/i
/** Longer names are of no program. */
const NAME_CHARACTERS_MAX = 100

/** Whether the next word is a secret: `--token`, `-H`, `--user`, `Bearer`, `"api_key":`. */
function announcesSecret(word: string): boolean {
  if (word.length > NAME_CHARACTERS_MAX) return false
  const bare = unquoted(word)
  if (/^(?:-H|-u|--user|bearer|basic)$/i.test(bare)) return true
  if (bare.startsWith('-')) return !bare.includes('=') && SECRET_NAME.test(bare)
  return /[:=]$/.test(bare) && SECRET_NAME.test(bare)
}

/** The word after a flag. Another flag and a number (`--max-tokens 4096`) are no secrets. */
function hideArgument(word: string): string {
  const bare = unquoted(word)
  const isPlain = bare.startsWith('-') || /^\d{1,9}$/.test(bare) || hideValue(bare) === bare
  return isPlain ? word : HIDDEN_SECRET
}

function unquoted(word: string): string {
  const isQuoted = word.length > 1 && (word.startsWith('"') || word.startsWith("'")) && word.at(-1) === word[0]
  return isQuoted ? word.slice(1, -1) : word
}

function hideInWord(word: string, level: number): string {
  const bare = unquoted(word)
  const isQuoted = bare.length < word.length
  if (isQuoted && /\s/.test(bare)) {
    if (level >= LEVELS_MAX) return HIDDEN_SECRET
    const shown = hideInString(bare, '', level + 1)
    return shown === bare ? word : word.replace(bare, () => shown)
  }
  return hideAssignments(hidePassword(word))
}

/** `scheme://user:password@host`, and a token as the user. */
function hidePassword(word: string): string {
  const scheme = word.indexOf('://')
  if (scheme === -1) return word
  const start = scheme + 3
  const length = word.slice(start).search(/[/?#]/)
  const end = length === -1 ? word.length : start + length
  const at = word.slice(start, end).lastIndexOf('@')
  return at === -1 || word.slice(start, start + at) === 'git'
    ? word
    : word.slice(0, start) + HIDDEN_SECRET + word.slice(start + at)
}

/** `--api-key=x`, `API_KEY=x`, `?token=x&api_key=y`, `X-Api-Key:x`. */
function hideAssignments(word: string): string {
  const shown = hideAssignment(word)
  const query = word.indexOf('?')
  if (shown !== word || query === -1) return shown
  const pieces = word.slice(query).split(/([?&;])/)
  return word.slice(0, query) + pieces.map((piece) => hideAssignment(piece)).join('')
}

function hideAssignment(piece: string): string {
  const at = piece.search(/[=:]/)
  if (at <= 0 || at > NAME_CHARACTERS_MAX || at === piece.length - 1) return piece
  // `https://...` has no name before its colon.
  if (piece.startsWith('://', at) || !SECRET_NAME.test(piece.slice(0, at))) return piece
  const value = unquoted(piece.slice(at + 1))
  return hideArgument(value) === value ? piece : `${piece.slice(0, at + 1)}${HIDDEN_SECRET}`
}
