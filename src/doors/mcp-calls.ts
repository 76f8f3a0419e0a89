/**
 * The MCP seam between doors. The HTTP door identifies the caller, checks its access and limits, reads the body, and hands
 * the call over to `mcp/`. So the MCP server of a workspace has the same tokens, access rules and limits as every route.
 */
import type { TaskView } from '../inbox/reception.ts'
import type { Identity } from '../workspaces/tokens.ts'
import type { ClosingResponse } from './a2a-calls.ts'

export interface McpCall {
  /** The workspace whose server is called; the caller may act for it. */
  readonly workspaceId: string
  readonly identity: Identity
  readonly request: globalThis.Request
  readonly response: ClosingResponse
  /** The parsed body of the request, and its size. */
  readonly body: unknown
  readonly bytes: number
  /** The ways in which this caller may see a task. */
  readonly taskViews: readonly TaskView[]
  /** Runs `wait` with a signal that ends it: the client disconnects, its token is revoked, or the platform stops. */
  wait<T>(wait: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Logs why a tool failed; the sentence that its caller may see. */
  refuse(thrown: unknown): string
}

/** Contract: never throws for a failure of a tool; that is part of the answer. */
export type AnswerMcp = (call: McpCall) => Promise<globalThis.Response>
