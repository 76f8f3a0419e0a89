/**
 * Reads an ACP agent's permission request: what the agent wants to do, which of its options means yes or no, and
 * whether `allowed_tools` covers it. Pure; acp-backend.ts decides. Invariant: an unreadable request is refused, and so
 * is a decision for which the agent offers no option.
 */
import type {
  PermissionOption,
  PermissionOptionKind,
  RequestPermissionOutcome,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallContent,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import type { Decision, McpServer, PermissionRequest } from '../../backend.ts'
import { type Unchecked, unchecked } from './wire.ts'

export const PERMISSION_CANCELLED: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }

export interface AcpPermission extends PermissionRequest {
  /** The names that `allowed_tools` may use for this tool. The model cannot choose any of them. */
  readonly names: readonly string[]
  /** The subject without the explanation that some agents add. */
  readonly command: string
  readonly options: readonly Pick<PermissionOption, 'optionId' | 'kind'>[]
}

/** `announced`: the earlier `tool_call` updates of this call; the request may leave out what they said. */
export function readPermission(
  { toolCall, options }: Unchecked<RequestPermissionRequest>,
  announced: Unchecked<ToolCallUpdate> = {},
): AcpPermission | undefined {
  const requested = unchecked<ToolCallUpdate>(toolCall)
  if (typeof requested.toolCallId !== 'string' || !Array.isArray(options)) return undefined
  const call = { ...announced, ...requested }
  const names = toolNames(call)
  const subject = subjectOf(call)
  const isTitled = call.kind === 'execute' && !isJsonObject(call.rawInput) && typeof call.title === 'string'
  return {
    id: requested.toolCallId,
    tool: names[0] ?? 'tool',
    subject,
    names,
    command: isTitled ? String(call.title) : subject,
    options: options.filter(isOption),
  }
}

/** A person allows one use. A permanent yes (`lasting`) is sent only for a tool that the owner's settings allow. */
export function outcomeFor({ options }: AcpPermission, decision: Decision, lasting: boolean): RequestPermissionOutcome {
  const kinds: readonly PermissionOptionKind[] =
    decision === 'denied' ? ['reject_once', 'reject_always'] : ['allow_once', ...(lasting ? PERMANENT : [])]
  for (const kind of kinds) {
    const option = options.find((candidate) => candidate.kind === kind)
    if (option) return { outcome: 'selected', optionId: option.optionId }
  }
  return { outcome: 'cancelled' }
}

const PERMANENT: readonly PermissionOptionKind[] = ['allow_always']

/** An entry is `tool`, or `tool(command)` for exactly this command. */
export function isAllowed({ names, command }: AcpPermission, allowedTools: readonly string[]): boolean {
  return names.some((name) => allowedTools.some((entry) => entry === name || entry === `${name}(${command})`))
}

/** Whether the tool belongs to one of these MCP servers, in every spelling that agents use. */
export function isToolOfServers({ names }: AcpPermission, servers: readonly McpServer[]): boolean {
  const prefixes = servers.flatMap(({ name }) => [`mcp__${name}__`, `mcp_${name}_`, `mcp.${name}.`, `${name}_`])
  return names.some((name) => prefixes.some((prefix) => name.startsWith(prefix)))
}

/**
 * The names of the tool. claude's adapter sends the name in `_meta`, gemini puts it before the id of the call, codex's
 * adapter sends server and tool. A title counts as a name only if it cannot contain a command.
 */
function toolNames(call: Unchecked<ToolCallUpdate>): string[] {
  const { title, kind, rawInput, toolCallId } = call
  const names: string[] = []
  const meta = isJsonObject(call._meta) ? call._meta : {}
  const claude = meta['claudeCode']
  if (isJsonObject(claude) && typeof claude['toolName'] === 'string') names.push(claude['toolName'])
  const [, beforeId] = /^([A-Za-z_][\w.-]*?)__\1_\d+_\d+$/.exec(String(toolCallId)) ?? []
  if (beforeId !== undefined) names.push(beforeId)
  // Only if the adapter says that it wrote server and tool: the model writes the input of every other call.
  if (meta['is_mcp_tool_call'] === true && isJsonObject(rawInput)) {
    names.push(`mcp.${String(rawInput['server'])}.${String(rawInput['tool'])}`)
  }
  if (typeof title === 'string' && kind === 'other' && /^[\w.:-]{1,120}$/.test(title)) names.push(title)
  if (typeof kind === 'string' && kind !== 'other') names.push(kind)
  return names
}

/** The command line, or the input as JSON. Gemini sends no input: its title is the command, its content the rest. */
function subjectOf({ rawInput, content, title }: Unchecked<ToolCallUpdate>): string {
  if (isJsonObject(rawInput) && Object.keys(rawInput).length > 0) {
    const { command, description, ...rest } = rawInput
    const isPlain = typeof command === 'string' && Object.keys(rest).length === 0 && typeof description !== 'object'
    return isPlain ? command : JSON.stringify(rawInput)
  }
  const shown = Array.isArray(content) ? content.filter(isJsonObject).map(textOf) : []
  return [typeof title === 'string' ? title : '', ...shown].filter((text) => text !== '').join('\n')
}

function textOf(item: JsonObject): string {
  const { type, content } = unchecked<ToolCallContent>(item)
  return type === 'content' && isJsonObject(content) ? String(content['text'] ?? '') : JSON.stringify(item)
}

function isOption(option: unknown): option is Pick<PermissionOption, 'optionId' | 'kind'> {
  const { optionId, kind } = unchecked<PermissionOption>(option)
  return typeof optionId === 'string' && typeof kind === 'string'
}
