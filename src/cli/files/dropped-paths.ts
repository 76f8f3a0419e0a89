/**
 * The paths in a text that a terminal types when files are dropped on it: in quotes, with escaped spaces, or as `file://`
 * URLs, one or several. Any other text gives undefined, so a sentence that mentions a path is no dropped file.
 */
import { statSync } from 'node:fs'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A longer text is no list of paths. */
const TEXT_CHARACTERS_MAX = 16_384

/** Absolute paths of files that exist; undefined when the text is anything else. */
export function droppedPaths(text: string): string[] | undefined {
  const given = text.trim()
  if (given === '' || given.length > TEXT_CHARACTERS_MAX) return undefined
  // Some terminals neither quote nor escape.
  const whole = toPath(given)
  if (whole !== undefined && isFile(whole)) return [whole]
  const paths = splitWords(given)?.map(toPath)
  if (paths === undefined || paths.length === 0) return undefined
  return paths.every((path): path is string => path !== undefined && isFile(path)) ? paths : undefined
}

const isFile = (path: string): boolean => {
  try {
    return statSync(path).isFile()
  } catch {
    // A name that is too long, a folder that may not be read: no file that could be attached.
    return false
  }
}

function toPath(word: string): string | undefined {
  if (word.includes('\0')) return undefined
  if (word.startsWith('/')) return word
  if (word.startsWith('~/')) return join(homedir(), word.slice(2))
  if (!word.startsWith('file://')) return undefined
  try {
    const url = new URL(word)
    // Some desktops write the name of this machine into the URL.
    if (url.hostname === hostname().toLowerCase()) url.hostname = ''
    return fileURLToPath(url)
  } catch {
    return undefined
  }
}

/** Splits as a POSIX shell does, without expansion, but leaves URLs as they are; undefined when a quote is not closed. */
function splitWords(text: string): string[] | undefined {
  const words: string[] = []
  for (let rest = text.trimStart(); rest !== ''; rest = rest.trimStart()) {
    const url = /^file:\/\/\S+/.exec(rest)?.[0]
    const word = url ?? WORD.exec(rest)?.[0] ?? ''
    if (word === '') return undefined
    words.push(url ?? word.replaceAll(PIECE, unquoted))
    rest = rest.slice(word.length)
  }
  return words
}

const PIECE = /'[^']*'|"(?:\\[\s\S]|[^"\\])*"|\\[\s\S]|[^\s'"\\]+/g
const WORD = new RegExp(`^(?:${PIECE.source})+`)

function unquoted(piece: string): string {
  if (piece.startsWith("'")) return piece.slice(1, -1)
  if (piece.startsWith('"')) return piece.slice(1, -1).replaceAll(/\\(["\\$`])/g, '$1')
  return piece.replaceAll(/\\([\s\S])/g, '$1')
}
