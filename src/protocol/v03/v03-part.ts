/**
 * Translates a part between 1.0 and 0.3. Two keys in the part's metadata carry what 0.3 cannot express, so that a part
 * comes back complete from a 0.3 agent:
 * - `data_part_compat` (as in `@a2a-js/sdk`): `data` is not an object and is wrapped as `{value}`;
 * - `molecule_part`: mediaType and filename of a text or data part, and metadata that itself has these keys.
 * Invariant: `removeCompatKeys` undoes `addCompatKeys`. Keys that `addCompatKeys` would not have written are the
 * caller's own metadata and stay.
 */
import type { Metadata, Part } from '../a2a.ts'
import { isJsonObject, jsonEqual } from '../json.ts'
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

/** Adds the keys for what 0.3 cannot express; most parts need none. */
function addCompatKeys(part: Part): Part {
  const plain = fitsV03(part)
  if (plain && !hasCompatKeys(part.metadata)) return part
  if (plain && jsonEqual(removeCompatKeys(part), part)) return part
  return packIntoMetadata(part)
}

/** The original part, if the keys are ours; otherwise the part unchanged. */
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
  // Metadata that has such keys itself, or is empty, would not survive the removal of the keys, so it is carried whole.
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

/** The part that `packIntoMetadata` may have packed; undefined if the keys cannot be ours. The caller compares. */
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
