import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore, START_MS } from '../../../../test/harness/stores/sqlite-store.ts'
import type { Rules } from '../../../inbox/owners.ts'

const MEMBER = { name: 'member', principal: 'people', door: 'http' }
const RULE_VIEW = {
  id: 'r_1',
  workspace_id: WORKSPACE_ID,
  tool: 'Bash',
  scope: 'exact',
  pattern: 'ls',
  made_by: 'Ana',
  made_at: '2026-01-15T12:00:00.000Z',
  used: 0,
}

test('PL-24 the rules of a workspace are listed in pages, and revoked by their id', async (t) => {
  const { store, insert } = openTestStore(t)
  const { made_by, made_at: _at, used: _used, ...row } = RULE_VIEW
  const maker = { made_by, made_principal: 'user:ana', made_door: 'http', made_at: START_MS }
  await insert('permission_rules', { ...row, ...maker })
  await insert('permission_rules', { ...row, ...maker, id: 'r_2', used: 3, last_used_at: START_MS + 1000 })
  const rules = recordPart<Rules>({ revoke: undefined })
  const call = await openRoutes(t, { store, rules: rules.part })
  const path = `/workspaces/${WORKSPACE_ID}/rules`
  const second = { ...RULE_VIEW, id: 'r_2', used: 3, last_used_at: '2026-01-15T12:00:01.000Z' }
  assert.deepEqual((await call(`GET ${path}`, { role: 'member' })).json, { rules: [RULE_VIEW, second] })
  assert.deepEqual((await call(`GET ${path}?after=${START_MS}.r_1`)).json, { rules: [second] })
  assert.equal((await call(`DELETE ${path}/r_1`, { role: 'member' })).status, 204)
  assert.deepEqual(rules.take(), [['revoke', WORKSPACE_ID, 'r_1', MEMBER]])
})
