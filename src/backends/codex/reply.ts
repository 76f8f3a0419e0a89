/**
 * The reply of a codex turn, in both of its forms: text, tools, denied tools. The reply is the text of all messages with
 * a blank line between two. Commentary (codex's own word) is shown while codex works and is no part of the reply.
 * Invariant: the deltas joined are the reply.
 */
import type { JsonObject } from '../../protocol/json.ts'
import { ACTIVITY, createReplyBuilder, type ProgressEvent, type ReplyBuilder } from '../engine/reply-builder.ts'

export interface CodexReply {
  /** A piece of the message with that id. */
  delta(id: string, text: string): readonly ProgressEvent[]
  /** A whole message; pieces of it may have come before. */
  message(id: string, text: string): readonly ProgressEvent[]
  tool(item: JsonObject, state: 'started' | 'ended'): readonly ProgressEvent[]
  /** The note on denied tools, and the end. */
  finish(): ReturnType<ReplyBuilder['finish']>
}

export function createCodexReply(): CodexReply {
  const reply = createReplyBuilder()
  let messageId: string | undefined
  let streamed = ''
  const delta: CodexReply['delta'] = (id, text) => {
    if (text === '') return []
    const isNew = id !== messageId
    const gap = isNew && reply.text() !== '' ? '\n\n' : ''
    streamed = isNew ? text : streamed + text
    messageId = id
    return reply.append(`${gap}${text}`)
  }
  return {
    delta,
    message(id, text) {
      if (id !== messageId) return delta(id, text)
      // Only what the pieces lacked. If the message differs from its pieces, they stand.
      return text.startsWith(streamed) ? delta(id, text.slice(streamed.length)) : []
    },
    tool(item, state) {
      const name = toolName(item)
      if (name === undefined) return ACTIVITY
      if (state === 'started') return [{ type: 'tool', name, state: 'started' }]
      const { status } = item
      if (status === 'declined' || wasRejected(item)) reply.addDenied(name)
      return [{ type: 'tool', name, state: status === 'completed' ? 'finished' : 'failed' }]
    },
    finish: () => reply.finish('codex'),
  }
}

/** The tool of an item, in the names of either form; undefined for an item that is no tool. */
function toolName(item: JsonObject): string | undefined {
  switch (item['type']) {
    case 'commandExecution':
    case 'command_execution':
      return 'shell'
    case 'fileChange':
    case 'file_change':
      return 'apply_patch'
    case 'mcpToolCall':
    case 'mcp_tool_call':
      return mcpTool(String(item['server']), String(item['tool']))
    case 'webSearch':
    case 'web_search':
      return 'web_search'
    default:
      return undefined
  }
}

export const mcpTool = (server: string, tool: string): string => `mcp__${server}__${tool}`

/** Codex reports a denied MCP tool as a failed one; only the error text differs. */
function wasRejected({ error }: JsonObject): boolean {
  return /user rejected/i.test(JSON.stringify(error ?? ''))
}
