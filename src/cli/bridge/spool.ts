/**
 * The spool of a bridge: an outcome that was computed is written here, synced to the disk and closed to others, before
 * it is posted, and removed when the platform has it. So a bridge that is killed in between, or finds the platform gone,
 * posts it after its restart and computes nothing twice. Invariant: what is in the spool is posted before any lease is
 * asked for.
 */
import { open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { retryUntilAnswered } from '../../client/platform-connection.ts'
import { toMoleculeError } from '../../errors.ts'
import { type Inbox, type LeaseKey, leaseId, type NumberedEvents, type Outcome } from '../../inbox/inbox.ts'
import type { Log } from '../../log.ts'

interface SpooledOutcome {
  readonly key: LeaseKey
  readonly outcome: Outcome
  readonly unsent?: NumberedEvents
}

export interface SpoolOptions {
  readonly dir: string
  readonly log: Log
}

export interface Spool {
  /** The inbox whose settles go through the spool. */
  wrapInbox(inbox: Inbox): Inbox
  /** How many outcomes the platform has not got. */
  count(): Promise<number>
  /** Posts what an earlier run left; tells of each what became of it. */
  post(inbox: Inbox, tell: (posted: PostResult, what: string) => void, signal: AbortSignal): Promise<void>
}

/** `stale`: another had taken the message over, and the platform keeps this as a late result. */
export type PostResult = 'settled' | 'stale' | 'refused'

export function createSpool({ dir, log }: SpoolOptions): Spool {
  const pathOf = (key: LeaseKey) => join(dir, `${leaseId(key)}.json`)
  return {
    wrapInbox: (inbox) => ({
      ...inbox,
      async settle(key, outcome, unsent) {
        if (!SPOOLED_TYPES.has(outcome.type)) return await inbox.settle(key, outcome, unsent)
        const path = pathOf(key)
        await writeOutcome(path, { key: toLeaseKey(key), outcome, ...(unsent && { unsent }) }).catch((err: unknown) =>
          log.error({ err, path }, 'an outcome could not be kept before it was posted'),
        )
        return await settleAndRemove(path, () => inbox.settle(key, outcome, unsent))
      },
    }),
    count: async () => (await spooledFiles(dir)).length,
    async post(inbox, tell, signal) {
      for (const file of await spooledFiles(dir)) {
        const path = join(dir, file)
        try {
          const { key, outcome, unsent } = JSON.parse(await readFile(path, 'utf8')) as SpooledOutcome
          const settle = () => inbox.settle(key, outcome, unsent)
          tell(await settleAndRemove(path, () => retryUntilAnswered(settle, signal)), key.taskId)
        } catch (thrown) {
          if (signal.aborted) return
          log.error({ err: toMoleculeError(thrown), path }, 'what was kept cannot be posted')
          await rename(path, `${path}.refused`)
          tell('refused', `${path}.refused`)
        }
      }
    },
  }
}

const spooledFiles = async (dir: string) => (await readdir(dir)).filter((name) => name.endsWith('.json')).sort()

/** What cost an agent's work. Giving a message back costs nothing and is said again by itself. */
const SPOOLED_TYPES: ReadonlySet<Outcome['type']> = new Set(['done', 'retry', 'dead'])

/** Without what else a lease holds: the message itself need not lie here. */
const toLeaseKey = ({ workspaceId, conversationId, taskId, messageId, epoch }: LeaseKey): LeaseKey => ({
  workspaceId,
  conversationId,
  taskId,
  messageId,
  epoch,
})

async function settleAndRemove<T>(path: string, settle: () => Promise<T>): Promise<T> {
  const answer = await settle()
  await rm(path, { force: true })
  return answer
}

/**
 * One sync, which on the file systems in use brings a new file's name along; this is on the way of every answer. Half a
 * file, which only a crash in here can leave, is no JSON and is set aside when it is found: nothing was posted of it.
 */
async function writeOutcome(path: string, kept: SpooledOutcome): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(JSON.stringify(kept))
    await file.sync()
  } finally {
    await file.close()
  }
}
