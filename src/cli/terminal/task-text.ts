/** Tasks and their parts as text, for agents and people. */
import type { Part, Task } from '../../protocol/a2a.ts'
import { textOf } from '../../protocol/part.ts'

/** `needs_login` becomes `needs login`. */
export const workspaceStatusText = (status: string): string => status.replaceAll('_', ' ')

/** What a workspace with the status does or lacks, after its name. */
const STATUS_VERBS: Readonly<Record<string, string>> = {
  needs_login: 'needs a log-in',
  failed: 'cannot run',
  provisioning: 'is being set up',
}

/** `ana is online`, `ana needs a log-in: claude is not logged in`. Without a full stop. */
export function workspaceSentence(workspace: {
  readonly name: string
  readonly status: string
  readonly status_reason?: string | undefined
}): string {
  const { name, status, status_reason: reason = '' } = workspace
  const verb = STATUS_VERBS[status] ?? `is ${workspaceStatusText(status)}`
  return reason === '' ? `${name} ${verb}` : `${name} ${verb}: ${reason.replace(/\.$/, '')}`
}

/** The sentence of a failure; the lines below it are the program's own words. */
export const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** The text of the artifacts; without any, the text of the status. */
export function replyText(task: Task): string {
  const artifacts = (task.artifacts ?? []).map(partsText).filter((text) => text !== '')
  return artifacts.length > 0 ? artifacts.join('\n') : partsText(task.status.message)
}

/** The status text of a completed task, beside its answer. Undefined: there is none, or it is the answer itself. */
export function noticeText(task: Task): string | undefined {
  const text = partsText(task.status.message)
  const isAnswer = (task.artifacts ?? []).length === 0
  return task.status.state !== 'TASK_STATE_COMPLETED' || isAnswer || text === '' ? undefined : text
}

/** The joined text of a message or an artifact; files and data are left out. */
export function partsText(of: { readonly parts: readonly Part[] } | undefined): string {
  return textOf(of?.parts)
}
