/** What a tool of the MCP server is: one value, declared in the file of its subject and listed in `mcp.ts`. */
import type { z } from 'zod'
import type { Action } from '../../api/who-may.ts'
import type { Clock } from '../../clock.ts'
import type { Activity } from '../../inbox/activity.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Part } from '../../protocol/a2a.ts'
import type { TraceContext } from '../../protocol/trace-context.ts'
import type { ReadStore } from '../../store/store.ts'
import type { Memories } from '../../workspaces/memories.ts'
import type { WorkspaceRegistry } from '../../workspaces/registry.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import type { Outreach } from '../chat/homes/outreach.ts'
import type { McpCall } from '../mcp-calls.ts'

/** Files of the working folder of a turn that runs on this machine. */
export interface WorkingFiles {
  /** Throws `forbidden` for a file that is really elsewhere, `too_large`, or `not_found`. */
  read(path: string, workingDir: string): Promise<Part>
  /** The file comes with the answer of the turn. Throws `unsupported_operation` where the turn has no folder for that. */
  attach(file: Part, turn: { readonly workingDir: string; readonly conversationId: string }): Promise<void>
}

export interface McpContext {
  readonly reception: Reception
  readonly workspaces: Pick<Workspaces, 'get'>
  readonly registry: Pick<WorkspaceRegistry, 'peers'>
  readonly memories: Memories
  readonly activity: Pick<Activity, 'addNote'>
  readonly outreach: Pick<Outreach, 'send'>
  readonly workingFiles: WorkingFiles
  readonly store: ReadStore
  readonly clock: Clock
  readonly version: string
}

export interface ToolCall extends McpCall, McpContext {
  /** Tells the client that the call is alive; a client without a progress token does not hear it. */
  report(message: string): void
  /** From `_meta` of the call. */
  readonly trace: TraceContext | undefined
  /** The client has cancelled the call: it does not read the answer, though its connection may be open. */
  isGivenUp(): boolean
}

export interface ToolResult {
  readonly text: string
  /** The tool did not do its work; the text says why. */
  readonly isError?: boolean
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** The caller's role must allow it, besides `mcp.use`. */
  readonly access: Action
  readonly input: z.ZodObject
  /** It changes nothing. */
  readonly readOnly: boolean
  readonly run: (input: never, call: ToolCall) => Promise<ToolResult>
}

/** Declares a tool. Only this function sees the type of its input; the list does not. */
export function tool<Schema extends z.ZodObject>(
  value: Omit<Tool, 'input' | 'run'> & {
    readonly input: Schema
    readonly run: (input: z.output<Schema>, call: ToolCall) => Promise<ToolResult>
  },
): Tool {
  return value
}

/** A result for a model that reads it as JSON. */
export const jsonResult = (value: unknown): ToolResult => ({ text: JSON.stringify(value) })
