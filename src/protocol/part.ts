/**
 * Reads one part in any form that callers use: A2A 1.0's one-of, 0.3's `kind`, and the `type` form with `mime_type` and
 * `uri` that backends get. Also translates between the canonical part (1.0) and the backends' form.
 * Invariant: a part that was read has exactly one content and a file name that can be shown; nothing else is dropped.
 */
import type { Json, Metadata, Part } from './a2a.ts'
import { FILE_NAME_CHARACTERS_MAX, shownFileName } from './file-name.ts'
import { invalidRequest } from './invalid-request.ts'
import { isJsonObject, type JsonObject } from './json.ts'
import type { RequestPart } from './request.ts'
import { removeCompatKeys } from './v03/v03-part.ts'

/** `path` is the place of the part, for the error: `params.message.parts[0]`. */
export function readPart(value: unknown, path: string): Part {
  const part = readAnyForm(value, path)
  const { filename = '' } = part
  if (filename.length > FILE_NAME_CHARACTERS_MAX)
    throw invalidRequest(`${path} file name`, `must have at most ${FILE_NAME_CHARACTERS_MAX} characters`)
  return withShownName(part)
}

/** A part of an agent's answer. A name that is too long is cut, because an answer must not be lost for a name. */
export function readAgentPart(value: unknown, path: string): Part {
  return withShownName(readAnyForm(value, path))
}

function withShownName(part: Part): Part {
  if (part.filename === undefined) return part
  const filename = shownFileName(part.filename)
  return filename === part.filename ? part : { ...part, filename }
}

function readAnyForm(value: unknown, path: string): Part {
  if (!isJsonObject(value)) throw invalidRequest(path, 'must be an object')
  const kind = value['kind'] ?? undefined
  const type = value['type'] ?? undefined
  if (kind !== undefined && type !== undefined && kind !== type)
    throw invalidRequest(path, 'has a kind and a type that differ')
  if (kind !== undefined) return removeCompatKeys(readTagged(value, kind, path))
  if (type !== undefined) return readTagged(value, type, path)
  return { ...readContent(value, ONE_OF_MEMBERS, path), ...readAttributes(value, value, path) }
}

/** The part in the form of backends. */
export function toRequestPart(part: Part): RequestPart {
  const rest = {
    ...(part.mediaType === undefined ? {} : { mime_type: part.mediaType }),
    ...(part.filename === undefined ? {} : { filename: part.filename }),
    ...(part.metadata === undefined ? {} : { metadata: part.metadata }),
  }
  if (part.text !== undefined) return { type: 'text', text: part.text, ...rest }
  if (part.raw !== undefined) return { type: 'file', bytes: part.raw, ...rest }
  if (part.url !== undefined) return { type: 'file', uri: part.url, ...rest }
  return { type: 'data', data: part.data ?? null, ...rest }
}

/** A part that is no text, described for a model that reads text. */
export function describePart(part: Part): string {
  if (part.data !== undefined) return JSON.stringify(part.data)
  const known = [part.filename, part.mediaType, part.url].filter((field) => field !== undefined).join(', ')
  return `[attached file${known === '' ? '' : `: ${known}`}]`
}

/** A backend's part in canonical form. It is fully checked, because a backend may be a program of another author. */
export function fromRequestPart(part: RequestPart, path = 'part'): Part {
  return readAgentPart(part, path)
}

/** Which member holds which content; the names differ between the forms. */
type ContentMembers = readonly (readonly [member: string, content: 'text' | 'raw' | 'url' | 'data'])[]

const ONE_OF_MEMBERS: ContentMembers = [
  ['text', 'text'],
  ['raw', 'raw'],
  ['url', 'url'],
  ['data', 'data'],
]
const TAGGED_MEMBERS: ContentMembers = [
  ['text', 'text'],
  ['bytes', 'raw'],
  ['uri', 'url'],
  ['data', 'data'],
]
const CONTENTS_OF_TAG: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  file: ['bytes', 'uri'],
  data: ['data'],
}

function readTagged(value: JsonObject, tag: unknown, path: string): Part {
  const members = typeof tag === 'string' && Object.hasOwn(CONTENTS_OF_TAG, tag) ? CONTENTS_OF_TAG[tag] : undefined
  if (members === undefined) throw invalidRequest(path, 'must be of kind text, file or data')
  const file = value['file'] ?? undefined
  const inFile = tag === 'file' && file !== undefined
  if (inFile && !isJsonObject(file)) throw invalidRequest(`${path}.file`, 'must be an object')
  const holder = inFile ? (file as JsonObject) : value
  const holderPath = inFile ? `${path}.file` : path
  const content = readContent(holder, TAGGED_MEMBERS, holderPath)
  if (!members.some((member) => isPresent(holder[member]) || (member === 'data' && 'data' in content))) {
    throw invalidRequest(path, `is a ${tag} part without ${members.join(' or ')}`)
  }
  return { ...content, ...readAttributes(holder, value, path) }
}

/**
 * Requires exactly one content. `data: null` counts only if there is no other, because null is a value only of data.
 */
function readContent(holder: JsonObject, contents: ContentMembers, path: string): Part {
  let found: Part | undefined
  for (const [member, content] of contents) {
    const value = holder[member]
    if (!isPresent(value)) continue
    if (found !== undefined) throw invalidRequest(path, `has more than one of ${namesOf(contents)}`)
    if (content === 'data') found = { data: value as Json }
    else found = { [content]: readString(value, content, `${path}.${member}`) }
  }
  if (found !== undefined) return found
  if (holder['data'] === null) return { data: null }
  throw invalidRequest(path, `has none of ${namesOf(contents)}`)
}

function readString(value: unknown, content: string, path: string): string {
  if (typeof value !== 'string') throw invalidRequest(path, 'must be a string')
  if (content === 'url' && value === '') throw invalidRequest(path, 'must not be empty')
  if (content === 'raw' && !isBase64(value)) throw invalidRequest(path, 'must be base64')
  return value
}

/** Reads mediaType, filename and metadata under old and new names; `outer` is the part around a 0.3 `file`. */
function readAttributes(holder: JsonObject, outer: JsonObject, path: string): Part {
  const mediaType =
    holder['mediaType'] ?? holder['media_type'] ?? holder['mimeType'] ?? holder['mime_type'] ?? undefined
  const filename = holder['filename'] ?? holder['name'] ?? undefined
  const metadata = outer['metadata'] ?? undefined
  if (mediaType === undefined && filename === undefined && metadata === undefined) return {}
  if (mediaType !== undefined && typeof mediaType !== 'string')
    throw invalidRequest(`${path} media type`, 'must be a string')
  if (filename !== undefined && typeof filename !== 'string')
    throw invalidRequest(`${path} file name`, 'must be a string')
  if (metadata !== undefined && !isJsonObject(metadata)) throw invalidRequest(`${path}.metadata`, 'must be an object')
  return {
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(filename === undefined ? {} : { filename }),
    ...(metadata === undefined ? {} : { metadata: metadata as Metadata }),
  }
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

const namesOf = (contents: ContentMembers): string => contents.map(([member]) => member).join(', ')

/** Accepts the standard and the URL-safe alphabet, padded or not, as JSON of protocol buffers does. */
function isBase64(text: string): boolean {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return false
  return text.endsWith('=') ? text.length % 4 === 0 : text.length % 4 !== 1
}

/** The text of all parts. Files and data have none. */
export const textOf = (parts: readonly { readonly text?: string | undefined }[] = [], between = ''): string =>
  parts.map(({ text = '' }) => text).join(between)
