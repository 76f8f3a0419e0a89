/**
 * The contracts of store, inbox and memory on a real PostgreSQL, and the tests of its shared transactions, nodes, hints and
 * outages.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { chatStoreContract } from './chat-store-contract.ts'
import { inboxContract } from './inbox-contract.ts'
import { memoryContract } from './memory-contract.ts'
import { hintTests } from './postgres/hints.ts'
import { memoryTests } from './postgres/memory.ts'
import { nodeTests } from './postgres/nodes.ts'
import { outageTests } from './postgres/outage.ts'
import { sharedTransactionTests } from './postgres/shared-transactions.ts'
import { scheduleContract } from './schedule-contract.ts'
import { storeContract } from './store-contract.ts'
import { tokenContract } from './token-contract.ts'
import { upgradeContract } from './upgrade-contract.ts'
import { workspaceContract } from './workspace-contract.ts'

let server: TestPostgres
before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

async function open(url?: string) {
  const store = await openPostgres({ url: url ?? (await server.url()), clock: systemClock, log: silentLog })
  return { store, dispose: () => store.close() }
}

storeContract({ name: 'PostgreSQL', open })
inboxContract({ name: 'PostgreSQL', open })
memoryContract({ name: 'PostgreSQL', open })
scheduleContract({ name: 'PostgreSQL', open })
chatStoreContract({ name: 'PostgreSQL', open })
workspaceContract({ name: 'PostgreSQL', open })
tokenContract({ name: 'PostgreSQL', open })
upgradeContract({
  name: 'PostgreSQL',
  async prepare(statements) {
    const url = await server.url()
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(statements)
    await client.end()
    return () => open(url)
  },
})
sharedTransactionTests(() => server)
nodeTests(() => server)
hintTests(() => server)
memoryTests(() => server)
outageTests(() => server)

// A test, because it removes the files of two hundred databases: a file has less time to end after its last test.
test('the server ends and leaves no file', async () => {
  await server.stop()
  assert.equal(existsSync(server.folder), false)
})
