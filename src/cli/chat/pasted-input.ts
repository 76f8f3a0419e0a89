/**
 * Stands between a terminal and the line editor, and makes one piece of every paste (bracketed paste mode). Several lines
 * become a placeholder in the typed line, such as `[paste 1: 12 lines]`, and a dropped file becomes `[file report.pdf]`.
 * `expand` puts the text back and names the files.
 */
import { basename } from 'node:path'
import { Transform } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { withoutControls } from '../../printable.ts'
import { trimEndOf } from '../../trim-end.ts'
import { droppedPaths } from '../files/dropped-paths.ts'

/** The terminal marks pastes while this is on. */
export const PASTE_MODE_ON = '\u001b[?2004h'
export const PASTE_MODE_OFF = '\u001b[?2004l'

const PASTE_BEGIN = '\u001b[200~'
const PASTE_END = '\u001b[201~'
/** A longer paste is refused; a file takes more. */
const PASTE_CHARACTERS_MAX = 1_000_000
/** Placeholders that the line editor may still recall from its history. */
const PLACEHOLDERS_MAX = 200

export interface PastedInput {
  /** The terminal's input for the line editor. */
  readonly stream: Transform
  /** The text with every placeholder replaced, and the files that it names. */
  expand(line: string): ExpandedLine
}

export interface ExpandedLine {
  readonly text: string
  /** Absolute paths. */
  readonly files: readonly string[]
  /** The line has dropped files and nothing else. */
  readonly isFilesAlone: boolean
}

export interface PastedInputOptions {
  /** A paste was too long and is left out. */
  readonly onTooLong: (charactersMax: number) => void
}

export function createPastedInput({ onTooLong }: PastedInputOptions): PastedInput {
  const placeholders = createPlaceholders()
  const decoder = new StringDecoder('utf8')
  const splitter = createPasteSplitter({
    onPaste(text, isTooLong) {
      if (isTooLong) onTooLong(PASTE_CHARACTERS_MAX)
      return isTooLong ? '' : placeholders.placeholderFor(text)
    },
  })
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const typed = splitter(decoder.write(chunk))
      done(null, typed === '' ? undefined : typed)
    },
  })
  return { stream, expand: placeholders.expand }
}

/** Returns what the line editor gets for the next characters of the terminal. */
function createPasteSplitter({ onPaste }: { onPaste: (text: string, isTooLong: boolean) => string }) {
  let held = ''
  let isPasting = false
  let isTooLong = false
  return (characters: string): string => {
    held += characters
    let typed = ''
    for (;;) {
      const end = held.indexOf(isPasting ? PASTE_END : PASTE_BEGIN)
      if (end === -1) break
      if (isPasting) typed += onPaste(held.slice(0, end), isTooLong || end > PASTE_CHARACTERS_MAX)
      else typed += held.slice(0, end)
      held = held.slice(end + PASTE_BEGIN.length)
      isPasting = !isPasting
      isTooLong = false
    }
    if (isPasting) {
      if (held.length <= PASTE_CHARACTERS_MAX) return typed
      isTooLong = true
      held = held.slice(-PASTE_END.length)
      return typed
    }
    // The beginning of a marker may be the end of this chunk. A lone escape is a key.
    const kept = partialMarkerLength(held)
    typed += held.slice(0, held.length - kept)
    held = held.slice(held.length - kept)
    return typed
  }
}

function partialMarkerLength(text: string): number {
  for (let length = PASTE_BEGIN.length - 1; length > 1; length--) {
    if (text.endsWith(PASTE_BEGIN.slice(0, length))) return length
  }
  return 0
}

type PlaceholderContent = { readonly text: string } | { readonly path: string }

const PLACEHOLDER = /\[(?:paste|file) [^[\]]*\]/g

function createPlaceholders() {
  const known = new Map<string, PlaceholderContent>()
  let pastes = 0
  const remember = (placeholder: string, content: PlaceholderContent): string => {
    known.delete(placeholder)
    known.set(placeholder, content)
    const [oldest] = known.keys()
    if (known.size > PLACEHOLDERS_MAX && oldest !== undefined) known.delete(oldest)
    return placeholder
  }
  const filePlaceholder = (path: string): string => {
    const name = withoutControls(basename(path)).replaceAll(/[[\]\s]+/g, ' ')
    for (let number = 1; ; number++) {
      const placeholder = number === 1 ? `[file ${name}]` : `[file ${number} ${name}]`
      const before = known.get(placeholder)
      if (before === undefined || ('path' in before && before.path === path)) return remember(placeholder, { path })
    }
  }
  const isFile = (placeholder: string): boolean => 'path' in (known.get(placeholder) ?? {})
  return {
    /** What is typed into the line in place of the paste. */
    placeholderFor(pasted: string): string {
      const text = withoutControls(pasted.replaceAll(/\r\n?/g, '\n'))
      const paths = droppedPaths(text)
      if (paths !== undefined) return `${paths.map(filePlaceholder).join(' ')} `
      const body = trimEndOf(text, '\n')
      // A tab would ask the line editor for a completion.
      if (!body.includes('\n')) return body.replaceAll('\t', ' ')
      const lines = body.split('\n').length
      return remember(`[paste ${++pastes}: ${lines} lines]`, { text: body })
    },
    expand(line: string): ExpandedLine {
      const files: string[] = []
      const text = line.replaceAll(PLACEHOLDER, (placeholder) => {
        const content = known.get(placeholder)
        if (content === undefined) return placeholder
        if ('text' in content) return content.text
        files.push(content.path)
        return basename(content.path)
      })
      const rest = line.replaceAll(PLACEHOLDER, (placeholder) => (isFile(placeholder) ? '' : placeholder))
      return { text, files, isFilesAlone: files.length > 0 && rest.trim() === '' }
    },
  }
}
