/**
 * Reads a tool call of an ACP agent: its names, and its subject, exactly what it would do. Pure. The events of a prompt
 * and its permission requests use the same functions, so both show the same.
 */
import type { ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk'
import { diffOfFile, diffOfTexts, type FileDiff } from '../../../protocol/file-diff.ts'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import { subjectOfInput } from '../tool-use.ts'
import { type Unchecked, unchecked } from './wire.ts'

/** What is known of one call: all updates so far, merged. */
export interface KnownToolCall {
  readonly call: Unchecked<ToolCallUpdate>
  /** The tool's name, where the program gives it as the title of the call's first update. */
  readonly ownName?: string | undefined
  /** The subject of the permission request for this call. */
  readonly askedSubject?: string | undefined
}

/** A title that can be a name: no command and no sentence. */
export const isToolName = (title: unknown): title is string =>
  typeof title === 'string' && /^[\w.:-]{1,120}$/.test(title)

/**
 * The names of the tool, the best first. The model cannot choose any of them. claude's adapter sends the name in `_meta`,
 * gemini puts it before the id of the call, codex's adapter sends server and tool. Any other title counts as a name only
 * if it cannot contain a command.
 */
export function toolNames({ call, ownName }: KnownToolCall): string[] {
  const { title, kind, rawInput, toolCallId } = call
  const names: string[] = ownName === undefined ? [] : [ownName]
  const meta = isJsonObject(call._meta) ? call._meta : {}
  const claude = meta['claudeCode']
  if (isJsonObject(claude) && typeof claude['toolName'] === 'string') names.push(claude['toolName'])
  const [, beforeId] = /^([A-Za-z_][\w.-]*?)__\1_\d+_\d+$/.exec(String(toolCallId)) ?? []
  if (beforeId !== undefined) names.push(beforeId)
  // Only if the adapter says that it wrote server and tool: the model writes the input of every other call.
  if (meta['is_mcp_tool_call'] === true && isJsonObject(rawInput)) {
    names.push(`mcp.${String(rawInput['server'])}.${String(rawInput['tool'])}`)
  }
  if (kind === 'other' && isToolName(title)) names.push(title)
  if (typeof kind === 'string' && kind !== 'other') names.push(kind)
  return names
}

export const toolNameOf = (known: KnownToolCall): string => toolNames(known)[0] ?? 'tool'

/** For an event. The content of a call is not read: after its end, it is the output of the tool. */
export function toolSubject(known: KnownToolCall, workingDir: string): string {
  if (known.askedSubject !== undefined) return known.askedSubject
  const { rawInput, title } = known.call
  const input = inputOf(rawInput, workingDir)
  if (input !== undefined) return subjectOfInput(input)
  return typeof title === 'string' && !toolNames(known).includes(title) ? title : ''
}

/** What the call changed. gemini sends whole files, opencode only the text that it replaced. */
export function diffsOfContent(content: unknown): FileDiff[] {
  if (!Array.isArray(content)) return []
  return content.filter(isJsonObject).flatMap(({ type, path, oldText, newText }): FileDiff[] => {
    if (type !== 'diff' || typeof path !== 'string' || typeof newText !== 'string') return []
    return [typeof oldText === 'string' ? diffOfTexts(path, oldText, newText) : diffOfFile(path, 'created', newText)]
  })
}

/** For a permission request. gemini sends no input: its title is the command, its content the rest. */
export function requestedSubject(known: KnownToolCall, workingDir: string): string {
  const { rawInput, content, title, kind } = known.call
  const input = inputOf(rawInput, workingDir)
  if (input !== undefined) return subjectOfInput(input)
  const shown = Array.isArray(content) ? content.filter(isJsonObject).map(textOf) : []
  const details = shown.filter((text) => text !== '' && !(kind === 'execute' && IN_WORKING_DIR.test(text)))
  // The title of an MCP call of gemini repeats the name in other words; its content is the input.
  const isInput = kind === 'other' && details.length > 0 && !isToolName(title)
  const isShown = typeof title === 'string' && !isInput && !toolNames(known).includes(title)
  return [isShown ? title : '', ...details].filter((text) => text !== '').join('\n') || NO_INPUT
}

/** opencode asks for an MCP tool before it knows the input. */
export const NO_INPUT = '(the agent does not say with which input)'

/** gemini's note under a command that runs where every command runs. Another folder is part of the subject. */
const IN_WORKING_DIR = /^\[current working directory [^\]\n]*\]( \(.*\))?$/s

/** The input without the working folder, which opencode adds; undefined if the agent gives no input. */
function inputOf(rawInput: unknown, workingDir: string): JsonObject | undefined {
  if (!isJsonObject(rawInput)) return undefined
  const { cwd, ...rest } = rawInput
  const input = cwd === workingDir ? rest : rawInput
  return Object.keys(input).length > 0 ? input : undefined
}

function textOf(item: JsonObject): string {
  const { type, content } = unchecked<ToolCallContent>(item)
  return type === 'content' && isJsonObject(content) ? String(content['text'] ?? '') : JSON.stringify(item)
}
