import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { systemClock } from '../clock.ts'
import { silentLog } from '../log.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { createHomes } from './homes/homes.ts'
import { createRecoveries } from './recoveries.ts'
import type { BackendCheck } from './workspace.ts'
import { createWorkspaceConfigs } from './workspace-configs.ts'
import { createWorkspaces } from './workspaces.ts'

test('BK-8 PL-3 a workspace whose program was installed later is online after the next check, without a turn', async (t) => {
  const folder = temporaryDir(t)
  const store = openSqlite({ path: join(folder, 'm.db'), clock: systemClock })
  t.after(() => store.close())
  const missing = new Set(['late', 'never'])
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (fields: unknown) => void warnings.push(fields) }
  const configs = createWorkspaceConfigs({
    store,
    homes: createHomes(folder),
    log: silentLog,
    async check(_, { cmd = '' }): Promise<BackendCheck> {
      return missing.has(cmd) ? { ok: false, reason: `${cmd}: not found` } : { ok: true }
    },
  })
  const workspaces = createWorkspaces({ store, homes: createHomes(folder), configs })
  const create = async (cmd: string) =>
    (await workspaces.create({ name: cmd, runtime: 'exec', runtimeConfig: { cmd } })).id
  const [late, never] = [await create('late'), await create('never')]
  const statusOf = async (id: string) => (await workspaces.get(id))?.status
  assert.deepEqual([await statusOf(late), await statusOf(never)], ['failed', 'failed'])
  const clock = manualClock()
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
