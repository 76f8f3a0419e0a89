/**
 * Makes a file name from outside safe for a disk, a prompt and a header.
 * Invariant: one plain name without folders, control characters or leading dots; not empty, at most 120 bytes.
 */
import { getExtension } from 'hono/utils/mime'

/** A longer name in a request is refused; the name of an agent's or a chat's file is cut. Room for a path. */
export const FILE_NAME_CHARACTERS_MAX = 1000
const NAME_BYTES_MAX = 120
const EXTENSION_BYTES_MAX = 16
/** Characters that hide or reorder the others: control characters, line separators, marks of direction. */
const INVISIBLE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
/** Folder separators, characters that file systems refuse, and invisible or misleading characters. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029/\\:*?"<>|`$]+/gu
/** Names that Windows reserves for devices, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/**
 * The name as people may see it: without invisible characters. A name that is too long loses its beginning, because the
 * extension is at its end.
 */
export function shownFileName(given: string): string {
  return lastCharacters(given).replace(INVISIBLE, '')
}

/** Returns `fallback` if nothing of the given name is left. */
export function safeFileName(given: string | undefined, fallback: string): string {
  // Cut first: a stored name may be older than the limit.
  const last =
    lastCharacters(given ?? '')
      .split(/[/\\]/)
      .at(-1) ?? ''
  const plain = withoutDots(last.normalize('NFC').replace(UNFIT, '_').replace(/\s+/g, ' '))
  const fit = DEVICE.test(plain) ? `_${plain}` : plain
  return /^[_ ]*$/.test(fit) ? fallback : shorten(fit)
}

/** Cut between characters, not inside of one. */
function lastCharacters(name: string): string {
  if (name.length <= FILE_NAME_CHARACTERS_MAX) return name
  return name.slice(-FILE_NAME_CHARACTERS_MAX).replace(/^[\udc00-\udfff]/, '')
}

/** Without the dots and spaces at both ends. Counts: the pattern `[. ]+$` takes quadratic time on dots. */
function withoutDots(name: string): string {
  const isEdge = (at: number) => name[at] === '.' || name[at] === ' '
  let start = 0
  let end = name.length
  while (start < end && isEdge(start)) start++
  while (end > start && isEdge(end - 1)) end--
  return name.slice(start, end)
}

/** `.png` for `image/png`; empty for a media type without a usual extension. */
export function extensionOf(mediaType: string | undefined): string {
  const extension = mediaType === undefined ? undefined : getExtension(mediaType)
  return extension === undefined ? '' : `.${extension}`
}

/** The same name with a number before its extension: `report-2.pdf`. */
export function numberedFileName(name: string, number: number): string {
  const { stem, extension } = splitName(name)
  return `${stem}-${number}${extension}`
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name
  const { stem, extension } = splitName(name)
  const characters = [...stem]
  let bytes = Buffer.byteLength(stem)
  while (bytes > NAME_BYTES_MAX - Buffer.byteLength(extension)) bytes -= Buffer.byteLength(characters.pop() ?? '')
  return `${characters.join('')}${extension}`
}

/** An extension that is too long counts as part of the stem. */
function splitName(name: string): { stem: string; extension: string } {
  const at = name.lastIndexOf('.')
  const extension = at > 0 ? name.slice(at) : ''
  if (extension === '' || Buffer.byteLength(extension) > EXTENSION_BYTES_MAX) return { stem: name, extension: '' }
  return { stem: name.slice(0, at), extension }
}
