import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Backend } from '../backends/backend.ts'
import type { Brief } from '../protocol/brief.ts'
import { createBackendPool } from './backend-pool.ts'

const BRIEF: Brief = { runtime: 'x', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }

function setUp() {
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

test('BK-4 a backend stays open between its turns', async () => {
  const { pool, closed } = setUp()
  for (let turn = 0; turn < 3; turn++) {
    const { backend, giveBack } = pool.take('ws_1', BRIEF)
    assert.equal(backend.name, 'backend 1')
    giveBack()
  }
  assert.deepEqual(closed, [])
  await pool.close()
  assert.deepEqual(closed, ['backend 1'])
  assert.equal(pool.take('ws_1', BRIEF).backend.name, 'backend 2', 'a closed backend runs no turn')
})

test('BK-4 an idle backend that is retired or replaced is closed at once, and a busy one after its last turn', async () => {
  const { pool, closed } = setUp()
  pool.take('idle', BRIEF).giveBack()
  const [first, second] = [pool.take('busy', BRIEF), pool.take('busy', BRIEF)]
  pool.retire('idle')
  pool.retire('busy')
  assert.deepEqual(closed, ['backend 1'])
  first.giveBack()
  assert.deepEqual(closed, ['backend 1'])
  second.giveBack()
  assert.deepEqual(closed, ['backend 1', 'backend 2'])
  pool.take('idle', BRIEF).giveBack()
  pool.take('idle', { ...BRIEF, options: { cmd: 'cat' } })
  assert.deepEqual(closed, ['backend 1', 'backend 2', 'backend 3'])
})
