/**
 * An ACP agent's request for permission: what it wants, which of its options means yes or no, and whether a list of
 * allowed tools covers it. Pure; who decides is the driver. Invariant: what cannot be read, and an answer for which
 * the agent offers no option, is a no.
 */
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import type { Decision, McpServer, PermissionRequest } from '../../backend.ts'

export interface AcpPermission extends PermissionRequest {
  /** Names by which `allowed_tools` may mean it; none of them is text that the model wrote. */
  readonly names: readonly string[]
  /** The subject without what an agent adds to explain it. */
  readonly command: string
  readonly options: readonly { readonly optionId: string; readonly kind: string }[]
}

export type PermissionOutcome =
  | { readonly outcome: 'selected'; readonly optionId: string }
  | { readonly outcome: 'cancelled' }

/** `params` of a `session/request_permission`; what it leaves out was told before, in the `tool_call` of that id. */
export function readPermission(params: JsonObject, told: JsonObject = {}): AcpPermission | undefined {
  const { toolCall, options } = params
  if (!isJsonObject(toolCall) || typeof toolCall['toolCallId'] !== 'string' || !Array.isArray(options)) return undefined
  const call = { ...told, ...toolCall }
  const names = toolNames(call)
  const subject = subjectOf(call)
  const isTitled = call['kind'] === 'execute' && !isJsonObject(call['rawInput']) && typeof call['title'] === 'string'
  return {
    id: toolCall['toolCallId'],
    tool: names[0] ?? 'tool',
    subject,
    names,
    command: isTitled ? String(call['title']) : subject,
    options: options.filter(isOption),
  }
}

/**
 * A person's yes is for this once; a yes for good is taken only where the owner's settings allow the tool anyway.
 */
export function outcomeFor({ options }: AcpPermission, decision: Decision, lasting: boolean): PermissionOutcome {
  const kinds =
    decision === 'denied' ? ['reject_once', 'reject_always'] : ['allow_once', ...(lasting ? ['allow_always'] : [])]
  for (const kind of kinds) {
    const option = options.find((candidate) => candidate.kind === kind)
    if (option) return { outcome: 'selected', optionId: option.optionId }
  }
  return { outcome: 'cancelled' }
}

/** `tool`, or `tool(command)` for exactly this command and no other. */
export function isAllowed({ names, command }: AcpPermission, allowedTools: readonly string[]): boolean {
  return names.some((name) => allowedTools.some((entry) => entry === name || entry === `${name}(${command})`))
}

/** A tool of one of these MCP servers, in the ways that agents name them; what Molecule itself gives needs no asking. */
export function isToolOfServers({ names }: AcpPermission, servers: readonly McpServer[]): boolean {
  const fronts = servers.flatMap(({ name }) => [`mcp__${name}__`, `mcp_${name}_`, `mcp.${name}.`, `${name}_`])
  return names.some((name) => fronts.some((front) => name.startsWith(front)))
}

/**
 * The tool's name in the agent's own word: claude's adapter gives it in `_meta`, gemini in front of the call's id,
 * codex's by server and tool. A title is a name only where no command can stand in it.
 */
function toolNames(call: JsonObject): string[] {
  const { title, kind, rawInput, toolCallId } = call
  const names: string[] = []
  const meta = isJsonObject(call['_meta']) ? call['_meta'] : {}
  const claude = meta['claudeCode']
  if (isJsonObject(claude) && typeof claude['toolName'] === 'string') names.push(claude['toolName'])
  const [, beforeId] = /^([A-Za-z_][\w.-]*?)__\1_\d+_\d+$/.exec(String(toolCallId)) ?? []
  if (beforeId !== undefined) names.push(beforeId)
  // Only where the adapter says that it wrote them: the input of any other call is the model's own.
  if (meta['is_mcp_tool_call'] === true && isJsonObject(rawInput)) {
    names.push(`mcp.${String(rawInput['server'])}.${String(rawInput['tool'])}`)
  }
  if (typeof title === 'string' && kind === 'other' && /^[\w.:-]{1,120}$/.test(title)) names.push(title)
  if (typeof kind === 'string' && kind !== 'other') names.push(kind)
  return names
}

/** The command line, or the input as JSON. Gemini has no input: its title is the whole command, its content the rest. */
function subjectOf(call: JsonObject): string {
  const { rawInput, content, title } = call
  if (isJsonObject(rawInput) && Object.keys(rawInput).length > 0) {
    const { command, description, ...rest } = rawInput
    const isPlain = typeof command === 'string' && Object.keys(rest).length === 0 && typeof description !== 'object'
    return isPlain ? command : JSON.stringify(rawInput)
  }
  const shown = Array.isArray(content) ? content.map(shownText) : []
  return [typeof title === 'string' ? title : '', ...shown].filter((text) => text !== '').join('\n')
}

function shownText(item: unknown): string {
  if (!isJsonObject(item)) return ''
  if (item['type'] === 'content' && isJsonObject(item['content'])) return String(item['content']['text'] ?? '')
  return JSON.stringify(item)
}

function isOption(option: unknown): option is { optionId: string; kind: string } {
  return isJsonObject(option) && typeof option['optionId'] === 'string' && typeof option['kind'] === 'string'
}
