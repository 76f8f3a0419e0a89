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
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import type { Decision, McpServer, PermissionRequest } from '../../backend.ts'
import { allowsToolUse } from '../tool-use.ts'
import { type KnownToolCall, requestedSubject, toolNameOf, toolNames } from './tool-call.ts'
import { type Unchecked, unchecked } from './wire.ts'

export const PERMISSION_CANCELLED: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }

export interface AcpPermission extends PermissionRequest {
  /** The names that `allowed_tools` may use for this tool. The model cannot choose any of them. */
  readonly names: readonly string[]
  readonly options: readonly Pick<PermissionOption, 'optionId' | 'kind'>[]
}

export interface PermissionContext {
  /** The earlier updates of the call; the request may leave out what they said. */
  readonly announced?: KnownToolCall | undefined
  readonly workingDir: string
}

export function readPermission(
  { toolCall, options }: Unchecked<RequestPermissionRequest>,
  { announced = { call: {} }, workingDir }: PermissionContext,
): AcpPermission | undefined {
  const requested = unchecked<ToolCallUpdate>(toolCall)
  if (typeof requested.toolCallId !== 'string' || !Array.isArray(options)) return undefined
  const call = { ...announced.call, ...requested }
  // A request of another kind is about more than the tool itself, e.g. a folder outside of the workspace.
  const isSameKind = requested.kind === undefined || requested.kind === announced.call.kind
  const known = isSameKind ? { call, ownName: announced.ownName } : { call }
  return {
    id: requested.toolCallId,
    tool: toolNameOf(known),
    subject: requestedSubject(known, workingDir),
    names: toolNames(known),
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

/** Whether the owner's list has the tool by any of its names, or exactly this use of it. */
export function isAllowed({ names, subject }: AcpPermission, allowedTools: readonly string[]): boolean {
  return names.some((tool) => allowsToolUse(allowedTools, { tool, subject }))
}

/** Whether the tool belongs to one of these MCP servers, in every spelling that agents use. */
export function isToolOfServers({ names }: AcpPermission, servers: readonly McpServer[]): boolean {
  const prefixes = servers.flatMap(({ name }) => [`mcp__${name}__`, `mcp_${name}_`, `mcp.${name}.`, `${name}_`])
  return names.some((name) => prefixes.some((prefix) => name.startsWith(prefix)))
}

function isOption(option: unknown): option is Pick<PermissionOption, 'optionId' | 'kind'> {
  const { optionId, kind } = unchecked<PermissionOption>(option)
  return typeof optionId === 'string' && typeof kind === 'string'
}
