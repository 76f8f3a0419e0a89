import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { startPostgres } from '../harness/stores/postgres.ts'
import { inboxModelContract } from './inbox-model.ts'

/** Each node has its own connections to the same database. */
async function open() {
  const server = await startPostgres()
  const url = await server.url()
  const stores = [
    await openPostgres({ url, clock: systemClock, log: silentLog }),
    await openPostgres({ url, clock: systemClock, log: silentLog }),
  ]
  const dispose = async () => {
    await Promise.all(stores.map((store) => store.close()))
    await server.stop()
  }
  return { stores, dispose }
}

inboxModelContract({ name: 'PostgreSQL', open }, { runs: 20, steps: 50 })
