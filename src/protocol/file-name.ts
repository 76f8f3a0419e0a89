/**
 * Makes a file name from outside safe for a disk, a prompt and a header.
 * Invariant: one plain name without folders, control characters or leading dots; not empty, at most 120 bytes.
 */
import { getExtension } from 'hono/utils/mime'

const NAME_BYTES_MAX = 120
const EXTENSION_BYTES_MAX = 16
/** Folder separators, characters that file systems refuse, and invisible or misleading characters. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029/\\:*?"<>|`$]+/gu
/** Names that Windows reserves for devices, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** Returns `fallback` if nothing of the given name is left. */
export function safeFileName(given: string | undefined, fallback: string): string {
  const last = (given ?? '').split(/[/\\]/).at(-1) ?? ''
  const plain = last
    .normalize('NFC')
    .replace(UNFIT, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[. ]+|[. ]+$/g, '')
  const fit = DEVICE.test(plain) ? `_${plain}` : plain
  return /^[_ ]*$/.test(fit) ? fallback : shorten(fit)
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
