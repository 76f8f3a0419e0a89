/**
 * What codex does in a turn, as both of its forms tell it: words, tools, what was denied. The words are the reply, all
 * of them, a blank line between two messages; what codex itself calls commentary is shown while it works and is no
 * part of the reply. Invariant: the deltas joined are the reply.
 */
import type { JsonObject } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'

type TextEvent = Extract<BackendEvent, { type: 'text' }>

export interface CodexReply {
  /** A piece of the message with that id. */
  delta(id: string, text: string): BackendEvent[]
  /** The whole of a message, of which pieces may have come before. */
  message(id: string, text: string): BackendEvent[]
  /** Words beside the reply, for whoever watches. */
  commentary(text: string): BackendEvent[]
  tool(item: JsonObject, state: 'started' | 'ended'): BackendEvent[]
  /** What is said of tools that were not allowed; to be said last. */
  denials(): TextEvent[]
  readonly text: string
}

export function createCodexReply(): CodexReply {
  let reply = ''
  let current: string | undefined
  let told = ''
  const denied = new Set<string>()
  const say = (words: string): TextEvent[] => {
    if (words === '') return []
    reply += words
    return [{ type: 'text', delta: words }]
  }
  const delta = (id: string, text: string): BackendEvent[] => {
    if (text === '') return []
    const between = id !== current && reply !== '' ? '\n\n' : ''
    if (id !== current) told = ''
    current = id
    told += text
    return say(`${between}${text}`)
  }
  return {
    delta,
    message(id, text) {
      if (id !== current) return delta(id, text)
      // Whatever the pieces lacked; a message that came out otherwise than its pieces has been told already.
      return text.startsWith(told) ? delta(id, text.slice(told.length)) : []
    },
    commentary: (text) => (text === '' ? [] : [{ type: 'status', text }]),
    tool(item, state) {
      const name = toolName(item)
      if (name === undefined) return [{ type: 'activity' }]
      if (state === 'started') return [{ type: 'tool', name, state: 'started' }]
      const { status } = item
      if (status === 'declined' || wasRejected(item)) denied.add(name)
      return [{ type: 'tool', name, state: status === 'completed' ? 'finished' : 'failed' }]
    },
    denials() {
      if (denied.size === 0) return []
      const note = `(Not allowed in this turn: ${[...denied].join(', ')}.)`
      return say(reply === '' ? note : `\n\n${note}`)
    },
    get text() {
      return reply
    },
  }
}

/** The tool of an item, in the words of either form; undefined for what is no tool. */
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

/** A denied MCP tool is a failed one to codex; only its words tell. */
function wasRejected({ error }: JsonObject): boolean {
  return /user rejected/i.test(JSON.stringify(error ?? ''))
}
