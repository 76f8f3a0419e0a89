/**
 * The spool of a bridge: it writes an outcome to the disk and syncs it before it posts the outcome, and removes the file
 * once the platform has it. A bridge that is killed in between posts it after its restart, so no turn runs twice.
 * Invariant: the spool is empty, or its rest refused, before the bridge asks for leases.
 */
import { open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { retryUntilAnswered } from '../../client/platform-connection.ts'
import { toMoleculeError } from '../../errors.ts'
import { type Inbox, type LeaseKey, leaseId, type NumberedEvents, type Outcome } from '../../inbox/worker.ts'
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
  /** How many outcomes the platform does not have yet. */
  count(): Promise<number>
  /** Posts the outcomes of an earlier run; calls back for each with its task, or for a refused one with its file. */
  post(inbox: Inbox, onPosted: (result: PostResult, subject: string) => void, signal: AbortSignal): Promise<void>
}

/** `stale`: another worker took over the message, and the platform keeps this outcome as a late result. */
export type PostResult = 'settled' | 'stale' | 'refused'

export function createSpool({ dir, log }: SpoolOptions): Spool {
  const pathOf = (key: LeaseKey) => join(dir, `${leaseId(key)}.json`)
  return {
    wrapInbox: (inbox) => ({
      ...inbox,
      async settle(key, outcome, unsent) {
        if (!SPOOLED_TYPES.has(outcome.type)) return await inbox.settle(key, outcome, unsent)
        const path = pathOf(key)
        await writeOutcome(path, { key: toLeaseKey(key), outcome, unsent }).catch((err: unknown) =>
          log.error({ err, path }, 'an outcome could not be written to the spool before it was posted'),
        )
        return await settleAndRemove(path, () => inbox.settle(key, outcome, unsent))
      },
    }),
    count: async () => (await spooledFiles(dir)).length,
    async post(inbox, onPosted, signal) {
      for (const file of await spooledFiles(dir)) {
        const path = join(dir, file)
        try {
          const { key, outcome, unsent } = JSON.parse(await readFile(path, 'utf8')) as SpooledOutcome
          const settle = () => inbox.settle(key, outcome, unsent)
          onPosted(await settleAndRemove(path, () => retryUntilAnswered(settle, signal)), key.taskId)
        } catch (thrown) {
          if (signal.aborted) return
          log.error({ err: toMoleculeError(thrown), path }, 'an outcome in the spool cannot be posted')
          await rename(path, `${path}.refused`)
          onPosted('refused', `${path}.refused`)
        }
      }
    },
  }
}

const spooledFiles = async (dir: string) => (await readdir(dir)).filter((name) => name.endsWith('.json')).sort()

/** Outcomes that cost the agent's work. The others cost nothing: the platform offers such a message again by itself. */
const SPOOLED_TYPES: ReadonlySet<Outcome['type']> = new Set(['done', 'retry', 'dead'])

/** The key alone, so that the message of the lease is not written to the disk. */
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
 * Every answer waits for this one sync, which on common file systems also makes the new name durable. A crash in here can
 * leave half a file: it is not JSON, so `post` renames it to `.refused`. Nothing of it was posted.
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
