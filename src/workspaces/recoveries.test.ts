import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTestWorkspaces } from '../../test/harness/stores/workspaces.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { silentLog } from '../log.ts'
import { createRecoveries } from './recoveries.ts'

test('BK-8 PL-3 a workspace whose program was installed later is online after the next check, without a turn', async (t) => {
  const missing = new Set(['late', 'never'])
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (fields: unknown) => void warnings.push(fields) }
  const { store, clock, configs, workspaces } = openTestWorkspaces(t, async (_, { cmd = '' }) =>
    missing.has(cmd) ? { ok: false, reason: `${cmd}: not found` } : { ok: true },
  )
  const create = async (cmd: string) =>
    (await workspaces.create({ name: cmd, runtime: 'exec', runtimeConfig: { cmd } })).id
  const [late, never] = [await create('late'), await create('never')]
  const statusOf = async (id: string) => (await workspaces.get(id))?.status
  assert.deepEqual([await statusOf(late), await statusOf(never)], ['failed', 'failed'])
  const recoveries = createRecoveries({ store, configs, clock, log })
  recoveries.start()
  missing.delete('late')
  await waitUntil(async () => {
    clock.advance(30_000)
    return (await statusOf(late)) === 'online'
  }, 'the status recovers')
  assert.equal(await statusOf(never), 'failed')
  await recoveries.stop()
  assert.deepEqual(warnings, [])
})
