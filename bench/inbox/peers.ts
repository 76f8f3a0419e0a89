/**
 * The peers of the inbox benchmark: the inbox's own transactions with one commit per operation, and pg-boss, a job
 * queue on PostgreSQL, which sends, fetches and completes a job.
 */
import { PgBoss } from 'pg-boss'
import { claimReady } from '../../src/inbox/commands/claim.ts'
import { settle } from '../../src/inbox/commands/settle.ts'
import type { Store } from '../../src/store/store.ts'
import { keepSession } from '../../src/workspaces/sessions.ts'
import { CALLERS, DONE, HOST, inParallel } from './inbox-benchmark.ts'

/** The same store, but a write starts only when the one before it is durable. So each has its own commit. */
export function oneCommitEach(store: Store): Store {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...store,
    write(transaction, key) {
      const next = last.then(() => store.write(transaction, key))
      last = next.catch(() => undefined)
      return next
    },
  }
}

/**
 * Leases and settles `count` messages of a workspace, with one commit for each lease and each settle. A settle does not
 * pass its slot on: that would be the lease of the next message for free. Returns the milliseconds it took.
 */
export async function settleOneByOne(store: Store, workspaceId: string, count: number): Promise<number> {
  const startMs = performance.now()
  const worker = `${HOST}.separate`
  await inParallel(Array.from({ length: count }), async () => {
    const [claim] = await store.write(() => claimReady(workspaceId, worker, 1), workspaceId)
    if (claim === undefined) throw new Error('there is nothing to lease')
    const settlement = { key: claim.lease, outcome: DONE, unsent: undefined, accepts: () => false, keepSession: keep }
    await store.write(() => settle(settlement), workspaceId)
  })
  return performance.now() - startMs
}

const keep = (key: Parameters<typeof keepSession>[1], token: string | undefined) => keepSession(HOST, key, token)

export interface PgBossPeer {
  /** Each caller sends a job, fetches one, completes it and starts again. Returns the milliseconds it took. */
  serve(count: number): Promise<number>
  close(): Promise<void>
}

const QUEUE = 'messages'
const JOB = { text: 'hello molecule, how are you today' }

export async function openPgBoss(url: string): Promise<PgBossPeer> {
  // One connection per caller and no maintenance jobs, so that pg-boss is as fast as it can be.
  const boss = new PgBoss({ connectionString: url, max: CALLERS, supervise: false, schedule: false })
  boss.on('error', (error) => {
    throw error
  })
  await boss.start()
  await boss.createQueue(QUEUE)
  return {
    async serve(count) {
      const startMs = performance.now()
      await inParallel(Array.from({ length: count }), async () => {
        await boss.send(QUEUE, JOB)
        const [job] = await boss.fetch(QUEUE)
        if (job !== undefined) await boss.complete(QUEUE, job.id, { text: 'hello back' })
      })
      return performance.now() - startMs
    },
    close: () => boss.stop({ graceful: false }),
  }
}
