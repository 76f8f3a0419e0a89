/** Turns the result of a tool into the end of the turn. Pure. */
import { MoleculeError } from '../../errors.ts'
import type { Json, Part } from '../../protocol/a2a.ts'
import { shownFileName } from '../../protocol/file-name.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { textOf } from '../../protocol/part.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

export function parseToolResult(result: unknown): EndEvent {
  const { content, structuredContent, isError } = isJsonObject(result) ? result : {}
  const blocks = Array.isArray(content) ? content.filter(isJsonObject) : []
  const parts = blocks.map(toPart).filter((part) => part !== undefined)
  if (isError === true) {
    const message = textOf(parts, '\n').trim()
    return { type: 'failed', error: new MoleculeError('agent_failed', message || 'the tool failed without a message') }
  }
  // A tool with structured content repeats it as text. Without the text, the data is the reply.
  if (parts.length === 0 && structuredContent !== undefined) parts.push({ data: structuredContent as Json })
  return { type: 'done', parts: parts.length === 0 ? [{ text: '' }] : parts, finality: 'completed' }
}

function toPart(block: JsonObject): Part | undefined {
  switch (block['type']) {
    case 'text':
      return { text: String(block['text'] ?? '') }
    case 'image':
    case 'audio':
      return { raw: String(block['data'] ?? ''), ...mediaType(block) }
    case 'resource':
      return isJsonObject(block['resource']) ? resourcePart(block['resource']) : undefined
    case 'resource_link':
      return { url: String(block['uri']), ...mediaType(block), ...fileName(block['name']) }
    default:
      return undefined
  }
}

function resourcePart(resource: JsonObject): Part {
  const rest = {
    ...mediaType(resource),
    ...fileName(
      String(resource['uri'] ?? '')
        .split('/')
        .at(-1),
    ),
  }
  if (typeof resource['blob'] === 'string') return { raw: resource['blob'], ...rest }
  return { text: String(resource['text'] ?? ''), ...rest }
}

const mediaType = ({ mimeType }: JsonObject): { mediaType?: string } =>
  typeof mimeType === 'string' && mimeType !== '' ? { mediaType: mimeType } : {}

const fileName = (name: unknown): { filename?: string } =>
  typeof name === 'string' && name !== '' ? { filename: shownFileName(name) } : {}
