import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { sql } from '../../store/store.ts'
import { createTokens } from './token-store.ts'

test('PL-12 a poll ends the streams of expired tokens and of replaced secrets, and no others', async (t) => {
  const clock = manualClock()
  const store = openSqlite({ path: join(temporaryDir(t), 'm.db'), clock })
  t.after(() => store.close())
  const tokens = createTokens({ store, clock, adminToken: 'the-admin-token' })
  const ended: string[] = []
  const watch = async (name: string, secret: string) => {
    const identity = await tokens.verify(secret)
    assert.ok(identity)
    tokens.onRevoked(identity, () => void ended.push(name))
  }
  const expiring = await tokens.create({ name: 'expiring', role: 'member', expiresInMs: 5000 })
  const replaced = await tokens.create({ name: 'replaced', role: 'member' })
  const endless = await tokens.create({ name: 'endless', role: 'member' })
  for (const [name, { secret }] of Object.entries({ expiring, replaced, endless })) await watch(name, secret)
  await watch('new secret', (await tokens.rotate(replaced.id, 5000)).secret)
  const poll = async () => {
    clock.advance(5000)
    for (let turn = 0; turn < 3; turn++) {
      await store.read(() => sql('select 1 as one'))
      await clock.settle()
    }
  }
  await poll()
  assert.deepEqual(ended, ['expiring', 'replaced'])
  await poll()
  assert.deepEqual(ended, ['expiring', 'replaced'])
})
