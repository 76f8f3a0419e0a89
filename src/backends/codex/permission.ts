/**
 * Answers the permission requests of codex. With `permission: ask` a person decides about exactly what would be done;
 * with `allowed_tools` a tool that is not on the list is refused. Invariant: an unknown request is refused, and every
 * request gets one answer.
 */
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import type { Decision, PermissionRequest } from '../backend.ts'
import { unknownMethod } from '../engine/json-rpc.ts'
import { mcpTool } from './reply.ts'

export interface CodexPermissions {
  /** Tools that need no permission: `shell`, `apply_patch`, `mcp__<server>`, `mcp__<server>__<tool>`. */
  readonly allowedTools: readonly string[]
  /** Asks a person; undefined if no person is asked. */
  readonly ask: ((request: PermissionRequest, signal: AbortSignal) => Promise<Decision>) | undefined
  /** The file changes of an item: the request of codex has only the id of the item. */
  readonly changesOf: (itemId: string) => string | undefined
  /** An id for a request without one, unique within the turn. */
  readonly newId: () => string
}

export async function answerRequest(
  { method, params }: { readonly method: string; readonly params: unknown },
  permissions: CodexPermissions,
  signal: AbortSignal,
): Promise<unknown> {
  const request = isJsonObject(params) ? params : {}
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const decision = await decide(
        { ...requestIdOf(request, permissions), tool: 'shell', subject: commandOf(request) },
        permissions,
        signal,
      )
      return { decision: decision === 'allowed' ? 'accept' : 'decline' }
    }
    case 'item/fileChange/requestApproval': {
      const subject =
        permissions.changesOf(String(request['itemId'])) ?? textOf(request['reason']) ?? 'a change of files'
      const decision = await decide(
        { ...requestIdOf(request, permissions), tool: 'apply_patch', subject },
        permissions,
        signal,
      )
      return { decision: decision === 'allowed' ? 'accept' : 'decline' }
    }
    case 'mcpServer/elicitation/request':
      return await answerElicitation(request, permissions, signal)
    case 'item/permissions/requestApproval':
      // Refused: a decision about one command must not grant rights for a whole turn.
      return { permissions: {}, scope: 'turn' }
    case 'item/tool/requestUserInput':
      // No answers: no person is at a terminal. The agent must put its question into its reply.
      return { answers: {} }
    default:
      throw unknownMethod(method)
  }
}

/** Codex asks for an MCP tool with an MCP elicitation; every other elicitation is declined. */
async function answerElicitation(
  asked: JsonObject,
  permissions: CodexPermissions,
  signal: AbortSignal,
): Promise<unknown> {
  const meta = isJsonObject(asked['_meta']) ? asked['_meta'] : {}
  const tool = /\btool "([^"]+)"/.exec(String(asked['message']))?.[1]
  if (meta['codex_approval_kind'] !== 'mcp_tool_call' || tool === undefined) return DECLINED
  const request = {
    ...requestIdOf(asked, permissions),
    tool: mcpTool(String(asked['serverName']), tool),
    subject: JSON.stringify(meta['tool_params'] ?? {}),
  }
  const decision = await decide(request, permissions, signal)
  return decision === 'allowed' ? { action: 'accept', content: {}, _meta: null } : DECLINED
}

const DECLINED = { action: 'decline', content: null, _meta: null } as const

async function decide(
  request: PermissionRequest,
  permissions: CodexPermissions,
  signal: AbortSignal,
): Promise<Decision> {
  if (permissions.allowedTools.some((tool) => covers(tool, request.tool))) return 'allowed'
  if (permissions.ask === undefined) return 'denied'
  try {
    return await permissions.ask(request, signal)
  } catch {
    // If the person cannot be asked, the tool is denied.
    return 'denied'
  }
}

const covers = (allowed: string, tool: string): boolean =>
  allowed === tool || (allowed.startsWith('mcp__') && tool.startsWith(`${allowed}__`))

/** Unique within the turn, so that a repeated request does not ask the person twice. */
const requestIdOf = (asked: JsonObject, { newId }: CodexPermissions): { id: string } => ({
  id: textOf(asked['approvalId']) ?? textOf(asked['itemId']) ?? newId(),
})

function commandOf(asked: JsonObject): string {
  const command = textOf(asked['command'])
  if (command !== undefined) return command
  return JSON.stringify(asked['networkApprovalContext'] ?? asked['reason'] ?? 'an action that codex does not name')
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
