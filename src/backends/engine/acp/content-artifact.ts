/**
 * Turns an ACP content block that is no text into an artifact. Takes only data that the block itself carries: a link to
 * a file of the machine is meant for the agent and is never followed.
 */
import type { ContentBlock, EmbeddedResourceResource } from '@agentclientprotocol/sdk'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { type Unchecked, unchecked } from './wire.ts'

export function artifactOf(content: Unchecked<ContentBlock>, artifactId: string): Artifact | undefined {
  const part = partOf(content)
  if (part === undefined) return undefined
  return part.filename === undefined
    ? { artifactId, parts: [part] }
    : { artifactId, name: part.filename, parts: [part] }
}

function partOf(content: Unchecked<ContentBlock>): Part | undefined {
  switch (content.type) {
    case 'image':
    case 'audio':
      return bytesPart(content.data, content)
    case 'resource':
      return resourcePart(unchecked(content.resource))
    default:
      return undefined
  }
}

function resourcePart(resource: Unchecked<EmbeddedResourceResource>): Part | undefined {
  const { text, blob } = resource
  return typeof text === 'string' ? { text, ...namesOf(resource) } : bytesPart(blob, resource)
}

function bytesPart(data: unknown, source: NameSource): Part | undefined {
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(data)) return undefined
  return { raw: data, ...namesOf(source) }
}

type NameSource = Pick<Unchecked<EmbeddedResourceResource>, 'mimeType' | 'uri'>

function namesOf({ mimeType, uri }: NameSource): Part {
  const filename = typeof uri === 'string' ? uri.split('/').at(-1) : undefined
  return {
    ...(typeof mimeType === 'string' ? { mediaType: mimeType } : {}),
    ...(filename ? { filename } : {}),
  }
}
