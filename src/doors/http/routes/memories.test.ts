import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import type { Memories, Memory } from '../../../workspaces/memories.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/memories`
const OWN = `workspace:${WORKSPACE_ID}`
const MEMORY: Memory = {
  id: 'mem_1',
  namespace: OWN,
  kind: 'memory',
  text: 'x',
  writtenBy: 'ana',
  createdAtMs: 1_700_000_000_000,
}
const VIEW = {
  id: 'mem_1',
  namespace: OWN,
  kind: 'memory',
  text: 'x',
  written_by: 'ana',
  created_at: '2023-11-14T22:13:20.000Z',
  expires_at: null,
}

test('TW-7 a text is remembered for the workspace by default, in the name of its author', async (t) => {
  const memories = recordPart<Memories>({ resolveNamespace: OWN, commit: MEMORY })
  const call = await openRoutes(t, { memories: memories.part })
  const { status, json } = await call(`POST ${PATH}`, { role: 'member', body: { text: ' x ' } })
  assert.deepEqual([status, json], [201, VIEW])
  await call(`POST ${PATH}`, { role: 'workspace', body: { text: 'x', namespace: 'team', kind: 'summary' } })
  assert.deepEqual(memories.take(), [
    ['resolveNamespace', WORKSPACE_ID, 'workspace'],
    ['commit', { text: 'x', namespace: OWN, kind: 'memory', writtenBy: 'member' }],
    ['resolveNamespace', WORKSPACE_ID, 'team'],
    ['commit', { text: 'x', namespace: OWN, kind: 'summary', writtenBy: WORKSPACE_ID }],
  ])
})

test('TW-7 a memory has its limits: the longest passes, one more is refused by name', async (t) => {
  const memories = recordPart<Memories>({ resolveNamespace: OWN, commit: MEMORY })
  const call = await openRoutes(t, { memories: memories.part })
  const write = (body: object) => call(`POST ${PATH}`, { body: { text: 'x', ...body } })
  for (const body of [{ text: 'x'.repeat(16_000) }, { namespace: 'n'.repeat(100) }])
    assert.equal((await write(body)).status, 201)
  const wrong = [{ text: 'x'.repeat(16_001) }, { text: ' ' }, { namespace: 'n'.repeat(101) }, { kind: 'note' }]
  for (const body of wrong) {
    const { status, json } = await write(body)
    assert.equal(status, 400)
    assert.ok(json.error.message.includes(`"${Object.keys(body)[0]}"`), json.error.message)
  }
})

test('TW-7 memories are listed in pages of 20, or searched by their words', async (t) => {
  const expires = { ...MEMORY, expiresAtMs: 1_700_000_001_000 }
  const memories = recordPart<Memories>({
    resolveNamespace: OWN,
    list: { memories: [MEMORY, expires], nextCursor: 'n' },
    search: [MEMORY],
  })
  const call = await openRoutes(t, { memories: memories.part })
  const listed = await call(`GET ${PATH}`)
  const later = { ...VIEW, expires_at: '2023-11-14T22:13:21.000Z' }
  assert.deepEqual(listed.json, { memories: [VIEW, later], next: 'n' })
  await call(`GET ${PATH}?namespace=team&cursor=n&limit=100`)
  const found = await call(`GET ${PATH}?query=x&limit=1`)
  assert.deepEqual(found.json, { memories: [VIEW], next: null })
  assert.deepEqual(memories.take(), [
    ['resolveNamespace', WORKSPACE_ID, 'workspace'],
    ['list', OWN, { limit: 20, cursor: undefined }],
    ['resolveNamespace', WORKSPACE_ID, 'team'],
    ['list', OWN, { limit: 100, cursor: 'n' }],
    ['resolveNamespace', WORKSPACE_ID, 'workspace'],
    ['search', OWN, 'x', 1],
  ])
  assert.equal((await call(`GET ${PATH}?query=${'x'.repeat(1000)}`)).status, 200)
  const tooLong = await call(`GET ${PATH}?query=${'x'.repeat(1001)}`)
  assert.deepEqual([tooLong.status, tooLong.json.error.code], [400, 'invalid_request'])
  for (const limit of [0, 101]) assert.equal((await call(`GET ${PATH}?limit=${limit}`)).status, 400)
  const last = recordPart<Memories>({ resolveNamespace: OWN, list: { memories: [] } })
  const empty = await openRoutes(t, { memories: last.part })
  assert.deepEqual((await empty(`GET ${PATH}`)).json, { memories: [], next: null })
})

test('TW-7 a memory is forgotten in its namespace, and one that is not there is 404', async (t) => {
  const memories = recordPart<Memories>({ resolveNamespace: OWN, forget: true })
  const call = await openRoutes(t, { memories: memories.part })
  assert.equal((await call(`DELETE ${PATH}/mem_1`)).status, 204)
  assert.equal((await call(`DELETE ${PATH}/mem_1?namespace=team`)).status, 204)
  assert.deepEqual(memories.take(), [
    ['resolveNamespace', WORKSPACE_ID, 'workspace'],
    ['forget', OWN, 'mem_1'],
    ['resolveNamespace', WORKSPACE_ID, 'team'],
    ['forget', OWN, 'mem_1'],
  ])
  const none = recordPart<Memories>({ resolveNamespace: OWN, forget: false })
  const missing = await (await openRoutes(t, { memories: none.part }))(`DELETE ${PATH}/mem_1`)
  assert.deepEqual([missing.status, missing.json.error.message], [404, `${OWN} has no memory mem_1`])
})
