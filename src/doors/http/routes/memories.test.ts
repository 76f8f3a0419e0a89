import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { createMemories, type Memories } from '../../../workspaces/memories.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/memories`
const OWN = `workspace:${WORKSPACE_ID}`
const TEAM = `team:${WORKSPACE_ID}`
const NOON = '2026-01-15T12:00:00.000Z'
const VIEW = { namespace: OWN, kind: 'memory', text: 'x', written_by: 'member', created_at: NOON, expires_at: null }

/** Routes on a store of memories. */
async function openMemories(t: TestContext) {
  const { store, clock } = openTestStore(t)
  const memories = createMemories({ store, find: async (id) => ({ id }) })
  return { clock, call: await openRoutes(t, { store, memories }) }
}

test('TW-7 a text is remembered for the workspace by default, in the name of its author', async (t) => {
  const { call } = await openMemories(t)
  const { status, json } = await call(`POST ${PATH}`, { role: 'member', body: { text: ' x ' } })
  const { id, ...view } = json
  assert.deepEqual([status, view], [201, VIEW])
  const summary = { text: 'x', namespace: 'team', kind: 'summary' }
  const { id: _, ...own } = (await call(`POST ${PATH}`, { role: 'workspace', body: summary })).json
  const expires_at = '2026-02-14T12:00:00.000Z'
  assert.deepEqual(own, { ...VIEW, ...summary, namespace: TEAM, written_by: WORKSPACE_ID, expires_at })
  assert.deepEqual((await call(`GET ${PATH}`)).json, { memories: [{ ...VIEW, id }], next: null })
})

test('TW-7 a memory has its limits: the longest passes, one more is refused by name', async (t) => {
  const { call } = await openMemories(t)
  const write = (body: object) => call(`POST ${PATH}`, { body: { text: 'x', ...body } })
  assert.equal((await write({ text: 'x'.repeat(16_000) })).status, 201)
  assert.equal((await write({ namespace: 'n'.repeat(100) })).status, 403)
  const wrong = [{ text: 'x'.repeat(16_001) }, { text: ' ' }, { namespace: 'n'.repeat(101) }, { kind: 'note' }]
  for (const body of wrong) {
    const { status, json } = await write(body)
    assert.equal(status, 400)
    assert.ok(json.error.message.includes(`"${Object.keys(body)[0]}"`), json.error.message)
  }
})

test('TW-7 memories are listed in pages of 20, or searched by their words', async (t) => {
  const { call, clock } = await openMemories(t)
  for (let n = 1; n <= 21; n++) {
    await call(`POST ${PATH}`, { role: 'member', body: { text: `number ${n}` } })
    clock.advance(1)
  }
  const list = async (query: string) => (await call(`GET ${PATH}${query}`)).json
  const texts = ({ memories }: { memories: { text: string }[] }) => memories.map(({ text }) => text)
  const page = await list('')
  assert.deepEqual([page.memories.length, texts(page)[0], page.next], [20, 'number 21', page.memories[19].id])
  assert.deepEqual(texts(await list(`?limit=100&cursor=${page.next}`)), ['number 1'])
  assert.deepEqual(await list('?namespace=team'), { memories: [], next: null })
  const found = await list('?query=number%207&limit=1')
  assert.deepEqual([texts(found), found.next], [['number 7'], null])
  assert.equal((await call(`GET ${PATH}?query=${'x'.repeat(1000)}`)).status, 200)
  const tooLong = await call(`GET ${PATH}?query=${'x'.repeat(1001)}`)
  assert.deepEqual([tooLong.status, tooLong.json.error.code], [400, 'invalid_request'])
  for (const limit of [0, 101]) assert.equal((await call(`GET ${PATH}?limit=${limit}`)).status, 400)
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
