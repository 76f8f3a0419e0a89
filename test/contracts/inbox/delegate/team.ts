/** Workspaces with a worker each, whose turns delegate to one another. */
import type { Letter } from '../../../../src/inbox/reception.ts'
import type { Lease } from '../../../../src/inbox/worker.ts'
import type { Metadata } from '../../../../src/protocol/a2a.ts'
import type { DelegationEnvelope } from '../../../../src/protocol/delegation.ts'
import { withMessageMetadata } from '../../../../src/protocol/envelope.ts'
import { type LetterOptions, letterTo } from '../../../fakes/letters.ts'
import { failure, type InboxHarness, type TestWorker } from '../harness.ts'

/** A message that the turn of the lease sends to another workspace. */
export function childOf({ workspaceId, conversationId }: Lease, to: string, options: LetterOptions = {}): Letter {
  const principal = `ws:${workspaceId}/${conversationId}`
  return { ...letterTo(to, { principal, ...options }), parent: { workspaceId, conversationId } }
}

/** The letter with these limits, as a sender gives them. */
export const withLimits = (letter: Letter, limits: Metadata): Letter => ({
  ...letter,
  envelope: withMessageMetadata(letter.envelope, { molecule_delegation: limits }),
})

/** What travels with the message. */
export const limitsOf = ({ envelope }: Lease) =>
  envelope.message.metadata?.['molecule_delegation'] as unknown as DelegationEnvelope
export const pathOf = ({ envelope }: Lease) => envelope.message.metadata?.['molecule_path']

export const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: true } as const
export const textOf = (lease: Lease) => lease.envelope.message.parts.map(({ text }) => text).join('')

interface Team {
  readonly ids: readonly string[]
  readonly workers: readonly [TestWorker, TestWorker, ...TestWorker[]]
  readonly rootTask: string
  readonly lease: Lease
}

export function createTeams(harness: InboxHarness) {
  const admit = async (letter: Letter) => harness.local.reception.admit(letter)
  /** Workspaces with a worker each, and a running root turn in the first. */
  const withTeam = async (size: number, work: (team: Team) => Promise<void>) => {
    const ids: string[] = []
    for (let count = 0; count < size; count++) ids.push(await harness.workspace(60))
    const workers = ids.map((id) => harness.worker(id)) as [TestWorker, TestWorker, ...TestWorker[]]
    try {
      const root = await admit(letterTo(ids[0] ?? ''))
      const lease = await workers[0].lease()
      await work({ ids, workers, rootTask: root.taskId, lease })
    } finally {
      for (const worker of workers) await worker.leave()
    }
  }
  const relatives = async (id: string) => {
    const [row] = await harness.sql('select parent_id, root_id from messages where id = $1', id)
    return { ...row }
  }
  return { admit, withTeam, relatives }
}
