/** How workspaces and tasks read on a terminal, for agents and people alike. */
import type { WorkspaceSummary } from '../../client/platform-client.ts'
import type { Part, Task } from '../../protocol/a2a.ts'
import { alignColumns } from './output.ts'

/** One line each: name, id, status, role; columns lined up. */
export function workspaceTable(workspaces: readonly WorkspaceSummary[]): string {
  const rows = workspaces.map(({ name, id, status, status_reason: reason, role }) => [
    name,
    id,
    reason ? `${status} (${reason})` : status,
    role,
  ])
  return alignColumns(rows)
}

/** `TASK_STATE_INPUT_REQUIRED` is `input required`. */
export function taskStateText(task: Task): string {
  return task.status.state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', ' ')
}

/** What the agent said: its artifacts' text, or else the text that came with the status. */
export function replyText(task: Task): string {
  const artifacts = (task.artifacts ?? []).map(({ parts }) => textOf(parts)).filter((text) => text !== '')
  return artifacts.length > 0 ? artifacts.join('\n') : textOf(task.status.message?.parts ?? [])
}

const textOf = (parts: readonly Part[]): string => parts.map(({ text }) => text ?? '').join('')
