/**
 * The reply of a codex turn, in both of its forms: text, tools, denied tools. The reply is the text of all messages with
 * a blank line between two. Commentary (codex's own word) is shown while codex works and is no part of the reply.
 * Invariant: the deltas joined are the reply.
 */
import { diffOfFile, diffOfHunks, type FileDiff } from '../../protocol/file-diff.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { splitWords } from '../engine/cli/split-words.ts'
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
      const subject = toolSubject(item)
      const use = { type: 'tool', name, subject } as const
      if (state === 'started') return [{ ...use, state: 'started' }]
      const { status } = item
      if (status === 'declined' || wasRejected(item)) reply.addDenied(name)
      if (status !== 'completed') return [{ ...use, state: 'failed' }]
      const diffs = diffsOf(item)
      return [{ ...use, state: 'finished', ...(diffs.length > 0 && { diffs }) }]
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

/** What exactly the tool does, in the same words as the permission requests of codex. */
function toolSubject({ type, command, changes, arguments: input, query }: JsonObject): string | undefined {
  if (typeof command === 'string') return shellScript(command)
  if (Array.isArray(changes)) return JSON.stringify(changes)
  if (type === 'mcpToolCall' || type === 'mcp_tool_call') return JSON.stringify(input ?? {})
  return typeof query === 'string' && query !== '' ? query : undefined
}

/** A new or deleted file has its content as the diff, a changed one its hunks. The one-shot form has no diffs. */
function diffsOf({ changes }: JsonObject): FileDiff[] {
  if (!Array.isArray(changes)) return []
  return changes.filter(isJsonObject).flatMap(({ path, kind, diff }): FileDiff[] => {
    if (typeof path !== 'string' || typeof diff !== 'string' || !isJsonObject(kind)) return []
    if (kind['type'] === 'add') return [diffOfFile(path, 'created', diff)]
    if (kind['type'] === 'delete') return [diffOfFile(path, 'deleted', diff)]
    const { move_path: movedTo } = kind
    const after = typeof movedTo === 'string' ? movedTo : path
    // Codex adds a sentence on the new path after the hunks.
    const hunks = diff.replace(`\n\nMoved to: ${after}`, '').replace(/\n$/, '')
    return [diffOfHunks({ path: after, before: path }, hunks.split('\n'))]
  })
}

/** Codex runs every command as `/bin/bash -lc '<script>'`; the script alone is what the model wrote. */
export function shellScript(command: string): string {
  const [shell, flags, script, ...more] = splitWords(command) ?? []
  const isWrapped = /^(\/usr)?\/bin\/(ba|z|da)?sh$/.test(shell ?? '') && (flags === '-lc' || flags === '-c')
  return isWrapped && script !== undefined && more.length === 0 ? script : command
}

export const mcpTool = (server: string, tool: string): string => `mcp__${server}__${tool}`

/** Codex reports a denied MCP tool as a failed one; only the error text differs. */
function wasRejected({ error }: JsonObject): boolean {
  return /user rejected/i.test(JSON.stringify(error ?? ''))
}
