/**
 * ACP's content blocks, both ways: what an agent shows besides text becomes an artifact. Only what is carried inside
 * the block is taken; a link to a file of the machine is for the agent's own use and never followed.
 */
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'

export function artifactOf(content: JsonObject, artifactId: string): Artifact | undefined {
  const part = partOf(content)
  if (part === undefined) return undefined
  return part.filename === undefined
    ? { artifactId, parts: [part] }
    : { artifactId, name: part.filename, parts: [part] }
}

function partOf(content: JsonObject): Part | undefined {
  switch (content['type']) {
    case 'image':
    case 'audio':
      return bytesPart(content['data'], content)
    case 'resource':
      return isJsonObject(content['resource']) ? resourcePart(content['resource']) : undefined
    default:
      return undefined
  }
}

function resourcePart(resource: JsonObject): Part | undefined {
  const { text } = resource
  if (typeof text === 'string') return { text, ...namesOf(resource) }
  return bytesPart(resource['blob'], resource)
}

function bytesPart(data: unknown, holder: JsonObject): Part | undefined {
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(data)) return undefined
  return { raw: data, ...namesOf(holder) }
}

function namesOf({ mimeType, uri }: JsonObject): Part {
  const filename = typeof uri === 'string' ? uri.split('/').at(-1) : undefined
  return {
    ...(typeof mimeType === 'string' ? { mediaType: mimeType } : {}),
    ...(filename ? { filename } : {}),
  }
}
