/**
 * What the inbox is measured against: itself with a commit for each operation, and pg-boss, the job queue that people
 * use on PostgreSQL, doing the same with a job: send it, fetch it, complete it.
 */
import { PgBoss } from 'pg-boss'
import type { Store } from '../../src/store/store.ts'
import { CALLERS, inParallel } from './mill.ts'

/** The same store, but a write begins only when the one before it is durable: so each is a commit of its own. */
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

export interface Boss {
  /** Each caller sends a job, fetches one and completes it, and then the next. Gives the milliseconds it took. */
  serve(count: number): Promise<number>
  close(): Promise<void>
}

const QUEUE = 'messages'
const JOB = { text: 'hello molecule, how are you today' }

export async function openBoss(url: string): Promise<Boss> {
  // A connection for each caller, and no housekeeping beside the work: it is to be as quick as it can be.
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
