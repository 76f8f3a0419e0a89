/**
 * Answers the permission requests of codex. With `permission: ask` a person decides about exactly what would be done;
 * with `allowed_tools` a tool that is not on the list is refused. Invariant: an unknown request is refused, and every
 * request gets one answer.
 */
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import type { Decision, PermissionRequest } from '../backend.ts'
import { unknownMethod } from '../engine/json-rpc.ts'
import { allowsToolUse } from '../engine/tool-use.ts'
import { mcpTool, shellScript } from './reply.ts'

export interface CodexPermissions {
  /** Tools that need no permission: `shell`, `shell(git status)`, `apply_patch`, `mcp__<server>`, `mcp__<server>__<tool>`. */
  readonly allowedTools: readonly string[]
  /** Asks a person; undefined if no person is asked. */
  readonly ask: ((request: PermissionRequest, signal: AbortSignal) => Promise<Decision>) | undefined
  /** The file changes of an item: the request of codex has only the id of the item. */
  readonly changesOf: (itemId: string) => string | undefined
  /** A command that runs in another folder names it. */
  readonly workingDir: string
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
        { ...requestIdOf(request, permissions), tool: 'shell', subject: commandOf(request, permissions) },
        permissions,
        signal,
      )
      return { decision: decision === 'allowed' ? 'accept' : 'decline' }
    }
    case 'item/fileChange/requestApproval': {
      const subject =
        permissions.changesOf(String(request['itemId'])) ??
        notDescribed(textOf(request['reason']) ?? 'a change of files that codex does not describe')
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
  if (allowsToolUse(permissions.allowedTools, request)) return 'allowed'
  if (permissions.ask === undefined) return 'denied'
  try {
    return await permissions.ask(request, signal)
  } catch {
    // If the person cannot be asked, the tool is denied.
    return 'denied'
  }
}

/** Unique within the turn, so that a repeated request does not ask the person twice. */
const requestIdOf = (asked: JsonObject, { newId }: CodexPermissions): { id: string } => ({
  id: textOf(asked['approvalId']) ?? textOf(asked['itemId']) ?? newId(),
})

function commandOf(asked: JsonObject, { workingDir }: CodexPermissions): string {
  const command = textOf(asked['command'])
  const cwd = textOf(asked['cwd'])
  if (command === undefined) {
    if (isJsonObject(asked['networkApprovalContext'])) return JSON.stringify(asked['networkApprovalContext'])
    return notDescribed(textOf(asked['reason']) ?? 'an action that codex does not name')
  }
  const script = shellScript(command)
  // Prevents an answer, or a rule, for the working folder from counting in another one.
  return cwd === undefined || cwd === workingDir ? script : `cd ${quoted(cwd)} && ${script}`
}

const quoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`

/** In parentheses, the mark of a subject that does not say what exactly happens: a person decides, and no rule covers it. */
const notDescribed = (text: string): string => `(${text})`

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
