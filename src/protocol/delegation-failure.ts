/**
 * What an agent reads when a delegation failed. It begins with `[A2A_ERROR]`, so that an agent can tell it from an
 * answer, and it names three ways on. Agents are instructed never to pass it on.
 */
export const DELEGATION_ERROR_PREFIX = '[A2A_ERROR]'

export interface FailedDelegation {
  /** The name or the id of the workspace that was asked. */
  readonly workspace: string
  readonly reason: string
  /** Set when the task exists: its result can still be read by this id. */
  readonly taskId?: string | undefined
  /** How this agent lists its peers: `a2a peers`. */
  readonly listPeers?: string
}

/** With the prefix. */
export const delegationFailureText = (failed: FailedDelegation): string =>
  `${DELEGATION_ERROR_PREFIX} ${delegationFailureSentence(failed)}`

/** Without the prefix, for a program that adds it to all of its errors. */
export function delegationFailureSentence({ workspace, reason, taskId, listPeers }: FailedDelegation): string {
  const task = taskId === undefined ? '' : ` Its task is ${taskId}.`
  const peers = listPeers === undefined ? '' : ` (${listPeers})`
  return [
    `DELEGATION FAILED: ${workspace} gave no answer (${reason}).${task}`,
    `Do one of these: ask another peer${peers}; do the work yourself; or tell the user which peer is unavailable`,
    'and give your own best answer. Do not pass this text on as an answer.',
  ].join('\n')
}
