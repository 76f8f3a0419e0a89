/**
 * One vocabulary for tools. The name is the agent's own name of the tool. The subject is exactly what the tool would do:
 * the command of a shell, otherwise the tool's input as JSON. Invariant: events, permission asks and `allowed_tools`
 * use the same pair, so an owner can allow what the log shows: `Bash`, or `Bash(git status)` for one command.
 */
import type { JsonObject } from '../../protocol/json.ts'

export interface ToolUse {
  readonly tool: string
  readonly subject: string
}

/** A plain command is shown as it is. With any other input that changes what happens, the whole input is shown. */
export function subjectOfInput(input: JsonObject): string {
  const { command, description, timeout, ...rest } = input
  const isPlain = typeof description !== 'object' && typeof timeout !== 'object' && Object.keys(rest).length === 0
  return typeof command === 'string' && isPlain ? command : JSON.stringify(input)
}

/** An entry is `tool`, `tool(subject)` for exactly this use, or `mcp__<server>` for all tools of an MCP server. */
export function allowsToolUse(allowedTools: readonly string[], { tool, subject }: ToolUse): boolean {
  return allowedTools.some(
    (entry) =>
      entry === tool || entry === `${tool}(${subject})` || (entry.startsWith('mcp__') && tool.startsWith(`${entry}__`)),
  )
}

/** The parts of `tool(subject)`; undefined for an entry without a subject. */
export function splitEntry(entry: string): ToolUse | undefined {
  const [, tool, subject] = /^([^()]+)\((.*)\)$/s.exec(entry) ?? []
  return tool === undefined || subject === undefined ? undefined : { tool, subject }
}
