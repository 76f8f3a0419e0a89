/**
 * Text from outside, made safe to show to a person. A control character drives a terminal (OSC 52 writes the clipboard),
 * and a direction character shows a command in another order than the shell reads it. Linear in the length of the text.
 */

/** A longer name is cut where it is shown. */
const NAME_CHARACTERS_MAX = 200

/** Escapes them visibly (`\x1b`, `\u202e`), for commands: a person must see that something is there. Keeps lines and tabs. */
export const printable = (text: string): string => replaceUnsafe(text, escapeOf)

/** Removes them, and the colour codes of programs, for running text such as an answer. Keeps lines and tabs. */
export const withoutControls = (text: string): string =>
  replaceUnsafe(text.replaceAll(TERMINAL_CODE, '').replaceAll('\r', ''), () => '')

/** One line of limited length, for the name of a tool, a model or a person. */
export function printableName(name: string): string {
  const isCut = name.length > NAME_CHARACTERS_MAX
  const shown = printable(isCut ? name.slice(0, NAME_CHARACTERS_MAX) : name).replaceAll(/[\n\r\t]+/g, ' ')
  return isCut ? `${shown}…` : shown
}

/** `\u001b[31m`; its digits would stay when only the control character is removed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes them
const TERMINAL_CODE = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

function replaceUnsafe(text: string, replace: (code: number) => string): string {
  let shown = ''
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (!isUnsafe(code) || (code === CARRIAGE_RETURN && text.charCodeAt(at + 1) === NEWLINE)) continue
    shown += text.slice(from, at) + replace(code)
    from = at + 1
  }
  return from === 0 ? text : shown + text.slice(from)
}

const TAB = 0x09
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Controls (C0, DEL, C1), direction characters, line separators, and characters that take no place but joiners. */
function isUnsafe(code: number): boolean {
  if (code < 0x7f) return code < 0x20 && code !== NEWLINE && code !== TAB
  if (code <= 0x9f || code === 0xad || code === 0x61c || code === 0xfeff) return true
  if (code < 0x200b || code > 0x206f) return false
  const isJoiner = code === 0x200c || code === 0x200d
  return (code <= 0x200f && !isJoiner) || (code >= 0x2028 && code <= 0x202e) || code >= 0x2060
}

const escapeOf = (code: number): string =>
  code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
