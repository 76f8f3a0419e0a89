/**
 * A part between 1.0 and 0.3. What 0.3 has no place for rides in the part's metadata as marks, so that a part that
 * passes through a 0.3 peer comes back whole:
 * - `data` that is not an object is wrapped as `{value}` under the mark `data_part_compat` (the words of `@a2a-js/sdk`);
 * - a text's or data's mediaType and filename, and metadata that itself looks like a mark, are in `molecule_part`.
 * Invariant: `mark` and `unmark` are each other's inverse. Marks that are not exactly what `mark` would have written are
 * somebody's own metadata and stay as they are.
 */
import type { Metadata, Part } from './a2a.ts'
import { isJsonObject, jsonEqual } from './json.ts'
import type { V03File, V03Part } from './v03-types.ts'

const WRAPPED_DATA_KEY = 'data_part_compat'
const CARRIED_FIELDS_KEY = 'molecule_part'

export function partToV03(part: Part): V03Part {
  const { text, raw, url, data, mediaType, filename, metadata } = addCompatKeys(part)
  const rest = metadata === undefined ? {} : { metadata }
  if (text !== undefined) return { kind: 'text', text, ...rest }
  if (raw === undefined && url === undefined) {
    return { kind: 'data', data: data as Metadata, ...rest }
  }
  const file = {
    ...(raw === undefined ? { uri: url } : { bytes: raw }),
    ...(mediaType === undefined ? {} : { mimeType: mediaType }),
    ...(filename === undefined ? {} : { name: filename }),
  }
  return { kind: 'file', file: file as V03File, ...rest }
}

export function partFromV03(part: V03Part): Part {
  const rest = part.metadata === undefined ? {} : { metadata: part.metadata }
  if (part.kind === 'text') return removeCompatKeys({ text: part.text, ...rest })
  if (part.kind === 'data') return removeCompatKeys({ data: part.data, ...rest })
  const { bytes, uri, mimeType, name } = part.file
  return removeCompatKeys({
    ...(bytes === undefined ? { url: uri as string } : { raw: bytes }),
    ...(mimeType === undefined ? {} : { mediaType: mimeType }),
    ...(name === undefined ? {} : { filename: name }),
    ...rest,
  })
}

/** The part with marks in place of what 0.3 cannot say; most parts need none. */
function addCompatKeys(part: Part): Part {
  const plain = fitsV03(part)
  if (plain && !hasCompatKeys(part.metadata)) return part
  if (plain && jsonEqual(removeCompatKeys(part), part)) return part
  return packIntoMetadata(part)
}

/** The part that `mark` was given. */
export function removeCompatKeys(part: Part): Part {
  if (!hasCompatKeys(part.metadata)) return part
  const original = unpackFromMetadata(part, part.metadata as Metadata)
  return original !== undefined && jsonEqual(addCompatKeys(original), part) ? original : part
}

function hasCompatKeys(metadata: Metadata | undefined): boolean {
  return (
    metadata !== undefined && (Object.hasOwn(metadata, WRAPPED_DATA_KEY) || Object.hasOwn(metadata, CARRIED_FIELDS_KEY))
  )
}

const isFile = (part: Part): boolean => part.raw !== undefined || part.url !== undefined

function fitsV03(part: Part): boolean {
  if (isFile(part)) return true
  if (part.mediaType !== undefined || part.filename !== undefined) return false
  return part.text !== undefined || isJsonObject(part.data)
}

function packIntoMetadata(part: Part): Part {
  const { mediaType, filename, metadata, ...content } = part
  const named = { ...(mediaType === undefined ? {} : { mediaType }), ...(filename === undefined ? {} : { filename }) }
  const wrap = content.data !== undefined && !isJsonObject(content.data)
  // Metadata that taking the marks off would not give back (it has such keys itself, or is empty) is carried whole.
  const hidden = metadata !== undefined && (hasCompatKeys(metadata) || Object.keys(metadata).length === 0)
  const carried = { ...(isFile(part) ? {} : named), ...(hidden ? { metadata } : {}) }
  return {
    ...content,
    ...(wrap ? { data: { value: content.data ?? null } } : {}),
    ...(isFile(part) ? named : {}),
    metadata: {
      ...withoutCompatKeys(metadata ?? {}),
      ...(wrap ? { [WRAPPED_DATA_KEY]: true } : {}),
      ...(Object.keys(carried).length === 0 ? {} : { [CARRIED_FIELDS_KEY]: carried }),
    },
  }
}

/** What `carry` may have been given; undefined where the marks cannot be its own. The caller compares. */
function unpackFromMetadata(part: Part, metadata: Metadata): Part | undefined {
  const carried = metadata[CARRIED_FIELDS_KEY] ?? {}
  if (!isJsonObject(carried)) return undefined
  const { mediaType = part.mediaType, filename = part.filename, metadata: whole } = carried
  if (mediaType !== undefined && typeof mediaType !== 'string') return undefined
  if (filename !== undefined && typeof filename !== 'string') return undefined
  if (whole !== undefined && !isJsonObject(whole)) return undefined
  const visible = whole ?? withoutCompatKeys(metadata)
  const bare = whole === undefined && Object.keys(visible).length === 0
  const { mediaType: _mediaType, filename: _filename, metadata: _metadata, ...content } = part
  const unwrap =
    metadata[WRAPPED_DATA_KEY] === true && isJsonObject(content.data) && Object.hasOwn(content.data, 'value')
  return {
    ...content,
    ...(unwrap ? { data: (content.data as Metadata)['value'] ?? null } : {}),
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(filename === undefined ? {} : { filename }),
    ...(bare ? {} : { metadata: visible as Metadata }),
  }
}

function withoutCompatKeys(metadata: Metadata): Metadata {
  const { [WRAPPED_DATA_KEY]: _wrapped, [CARRIED_FIELDS_KEY]: _carried, ...rest } = metadata
  return rest
}
