import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Backend } from '../backends/backend.ts'
import type { Brief } from '../protocol/brief.ts'
import { createBackendPool } from './backend-pool.ts'

const brief = (cmd: string): Brief => ({
  runtime: 'exec',
  options: { cmd },
  systemPrompt: '',
  workingDir: '/',
  maxAttempts: 4,
  env: {},
})

function createCounted() {
  const closed: string[] = []
  const build = ({ options }: Brief): Backend => ({
    name: 'counted',
    validate: async () => ({ ok: true }),
    // biome-ignore lint/correctness/useYield: no turn is run in these tests
    async *run() {
      throw new Error('not run here')
    },
    async close() {
      closed.push(options['cmd'] ?? '')
    },
  })
  return { closed, pool: createBackendPool(build) }
}

/** A pool whose backends are named by the order in which they were built. */
function createNumbered() {
  let built = 0
  const closed: string[] = []
  const pool = createBackendPool((): Backend => {
    const name = `backend ${++built}`
    return {
      name,
      validate: async () => ({ ok: true }),
      run: () => assert.fail('no turn runs here'),
      close: async () => void closed.push(name),
    }
  })
  return { pool, closed }
}

test('BK-4 a backend is kept over turns and closed exactly once, however often the pool is closed', async () => {
  const { closed, pool } = createCounted()
  const first = pool.take('ws_1', brief('a'))
  const second = pool.take('ws_1', brief('a'))
  assert.equal(first.backend, second.backend)
  first.giveBack()
  second.giveBack()
  await Promise.all([pool.close(), pool.close()])
  await pool.close()
  assert.deepEqual(closed, ['a'])
})

test('a changed configuration gets a new backend, and the old one is closed after its last turn', async () => {
  const { closed, pool } = createCounted()
  const old = pool.take('ws_1', brief('a'))
  const fresh = pool.take('ws_1', brief('b'))
  assert.notEqual(old.backend, fresh.backend)
  assert.deepEqual(closed, [])
  old.giveBack()
  await Promise.resolve()
  assert.deepEqual(closed, ['a'])
  await pool.close()
  assert.deepEqual(closed, ['a', 'b'])
})

test('a configuration whose build fails leaves the old backend in place', async () => {
  const { closed, pool } = createCounted()
  const broken = createBackendPool((wanted) => {
    if (wanted.options['cmd'] === 'bad') throw new Error('bad')
    return pool.take('ws_1', wanted).backend
  })
  const { backend } = broken.take('ws_1', brief('a'))
  assert.throws(() => broken.take('ws_1', brief('bad')), /bad/)
  assert.equal(broken.take('ws_1', brief('a')).backend, backend)
  assert.deepEqual(closed, [])
  await broken.close()
})

test('a retired backend is closed after its last turn, and the next turn gets a new one', async () => {
  const { closed, pool } = createCounted()
  const running = pool.take('ws_1', brief('a'))
  pool.retire('ws_1')
  pool.retire('ws_1')
  pool.retire('ws_unknown')
  assert.deepEqual(closed, [])
  const fresh = pool.take('ws_1', brief('a'))
  assert.notEqual(fresh.backend, running.backend)
  running.giveBack()
  await Promise.resolve()
  assert.deepEqual(closed, ['a'])
  await pool.close()
  assert.deepEqual(closed, ['a', 'a'])
})

test('BK-4 a backend stays open between its turns', async () => {
  const { pool, closed } = createNumbered()
  for (let turn = 0; turn < 3; turn++) {
    const { backend, giveBack } = pool.take('ws_1', brief('a'))
    assert.equal(backend.name, 'backend 1')
    giveBack()
  }
  assert.deepEqual(closed, [])
  await pool.close()
  assert.deepEqual(closed, ['backend 1'])
  assert.equal(pool.take('ws_1', brief('a')).backend.name, 'backend 2', 'a closed backend runs no turn')
})

test('BK-4 an idle backend that is retired or replaced is closed at once, and a busy one after its last turn', async () => {
  const { pool, closed } = createNumbered()
  pool.take('idle', brief('a')).giveBack()
  const [first, second] = [pool.take('busy', brief('a')), pool.take('busy', brief('a'))]
  pool.retire('idle')
  pool.retire('busy')
  assert.deepEqual(closed, ['backend 1'])
  first.giveBack()
  assert.deepEqual(closed, ['backend 1'])
  second.giveBack()
  assert.deepEqual(closed, ['backend 1', 'backend 2'])
  pool.take('idle', brief('a')).giveBack()
  pool.take('idle', brief('b'))
  assert.deepEqual(closed, ['backend 1', 'backend 2', 'backend 3'])
})
