/** Workspaces with a worker each, whose turns delegate to one another, on a clock that the test moves. */
import type { TestContext } from 'node:test'
import type { Lease, Letter } from '../../src/inbox/inbox.ts'
import type { Metadata, Task, TaskState } from '../../src/protocol/a2a.ts'
import { withMessageMetadata } from '../../src/protocol/envelope.ts'
import { type ClockedInbox, type ClockedWorker, openInboxOnClock } from './inbox-on-clock.ts'

export const failure = { code: 'exit', message: 'it broke' }
export const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: true } as const

/** The letter with these limits, as a sender gives them. */
export const withLimits = (letter: Letter, limits: Metadata): Letter => ({
  ...letter,
  envelope: withMessageMetadata(letter.envelope, { molecule_delegation: limits }),
})

/** What travels with the message. */
export const limitsOf = ({ envelope }: Lease) => envelope.message.metadata?.['molecule_delegation']

export interface ClockedTeam {
  readonly inbox: ClockedInbox
  /** The workspaces, and the worker of each. */
  readonly ids: readonly string[]
  readonly workers: readonly ClockedWorker[]
  /** Admits the letter, and its turn begins. */
  begin(letter: Letter): Promise<Lease>
  /** As the conversation of the lease reads the task, with the state that it saw. */
  read(lease: Lease, taskId: string, state?: TaskState): Promise<void>
  states(...taskIds: readonly string[]): Promise<(string | undefined)[]>
}

export async function openTeam(t: TestContext, names: readonly string[], slots = 20): Promise<ClockedTeam> {
  const inbox = openInboxOnClock(t)
  const ids: string[] = []
  for (const name of names) ids.push(await inbox.workspace({ name, slots }))
  const workers = ids.map((id) => inbox.worker([id]))
  return {
    inbox,
    ids,
    workers,
    async begin(letter) {
      await inbox.local.reception.admit(letter)
      return await (workers[ids.indexOf(letter.workspaceId)] as ClockedWorker).lease()
    },
    async read({ workspaceId, conversationId }, taskId, state) {
      const task = (await inbox.local.reception.task(taskId)) as Task
      const seen = state === undefined ? task : { ...task, status: { ...task.status, state } }
      await inbox.local.reception.markRead(seen, `ws:${workspaceId}/${conversationId}`)
    },
    states: (...taskIds) => Promise.all(taskIds.map(inbox.state)),
  }
}
