import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTestStore } from '../../test/harness/stores/sqlite-store.ts'
import { silentLog } from '../log.ts'
import { createWorkspaceConfigs } from './config/workspace-configs.ts'
import { createHomes } from './homes/homes.ts'
import { createWorkspaces } from './workspaces.ts'

test('PL-18 a workspace that an earlier version stored with tier 1 does not run without its sandbox', async (t) => {
  const { store, folder } = openTestStore(t)
  const homes = createHomes(folder)
  const configs = createWorkspaceConfigs({ store, homes, log: silentLog, check: async () => ({ ok: true }) })
  const workspaces = createWorkspaces({ store, homes, configs })
  const { id } = await workspaces.create({ name: 'n', runtime: 'mock', tier: 1 })
  await assert.rejects(configs.refresh(id), { code: 'bad_config' })
  const stored = await workspaces.get(id)
  assert.equal(stored?.status, 'failed')
  assert.match(
    stored?.statusReason ?? '',
    /^tier 1 means a sandbox, and this version has none\..*PATCH \/workspaces\/ws_/,
  )
})
