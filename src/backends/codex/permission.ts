/**
 * What codex asks before it acts, and what it is answered. With `permission: ask` the question goes to a person, bound
 * to exactly what would be done; with `allowed_tools` whatever is not on the list is refused unasked. Invariant: a
 * question that nobody understands is refused, and every question has one answer.
 */
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import type { Decision, PermissionRequest } from '../backend.ts'
import { unknownMethod } from '../engine/json-rpc.ts'
import { mcpTool } from './reply.ts'

export interface CodexPermissions {
  /** Tools that are used unasked: `shell`, `apply_patch`, `mcp__<server>`, `mcp__<server>__<tool>`. */
  readonly allowedTools: readonly string[]
  /** Puts the question to a person; undefined where nobody is asked. */
  readonly ask: ((request: PermissionRequest, signal: AbortSignal) => Promise<Decision>) | undefined
  /** What a change of files would be, by the id of its item: codex asks by that id alone. */
  readonly changesOf: (itemId: string) => string | undefined
  /** For a question that codex itself gives none: unique within the turn. */
  readonly newId: () => string
}

/** The answer to a request of codex's. */
export async function answerRequest(
  { method, params }: { readonly method: string; readonly params: unknown },
  permissions: CodexPermissions,
  signal: AbortSignal,
): Promise<unknown> {
  const asked = isJsonObject(params) ? params : {}
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const decision = await decide(
        { ...requestIdOf(asked, permissions), tool: 'shell', subject: commandOf(asked) },
        permissions,
        signal,
      )
      return { decision: decision === 'allowed' ? 'accept' : 'decline' }
    }
    case 'item/fileChange/requestApproval': {
      const subject = permissions.changesOf(String(asked['itemId'])) ?? textOf(asked['reason']) ?? 'a change of files'
      const decision = await decide(
        { ...requestIdOf(asked, permissions), tool: 'apply_patch', subject },
        permissions,
        signal,
      )
      return { decision: decision === 'allowed' ? 'accept' : 'decline' }
    }
    case 'mcpServer/elicitation/request':
      return await answerElicitation(asked, permissions, signal)
    case 'item/permissions/requestApproval':
      // More rights for a whole turn are nothing that one look at one command can grant.
      return { permissions: {}, scope: 'turn' }
    case 'item/tool/requestUserInput':
      // Nobody is at a terminal; the agent has to put its question into its reply.
      return { answers: {} }
    default:
      throw unknownMethod(method)
  }
}

/** An MCP tool is asked for in the words of the protocol's own questions; other questions of a server are declined. */
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
    // A question that cannot be put is a denial.
    return 'denied'
  }
}

const covers = (allowed: string, tool: string): boolean =>
  allowed === tool || (allowed.startsWith('mcp__') && tool.startsWith(`${allowed}__`))

/** Unique within the turn: the same question asked again is not put twice. */
const requestIdOf = (asked: JsonObject, { newId }: CodexPermissions): { id: string } => ({
  id: textOf(asked['approvalId']) ?? textOf(asked['itemId']) ?? newId(),
})

function commandOf(asked: JsonObject): string {
  const command = textOf(asked['command'])
  if (command !== undefined) return command
  return JSON.stringify(asked['networkApprovalContext'] ?? asked['reason'] ?? 'something that codex does not name')
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
