import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Activity } from '../../../inbox/activity.ts'
import { envelopeOf, writeEnvelope } from '../../../protocol/envelope.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/activity`
const MAX = Number.MAX_SAFE_INTEGER

/** A door on a store whose workspace has a log of this many notes by ana; number 4 belongs to a task. */
async function openLog(t: TestContext, notes: number) {
  const { store, insert } = openTestStore(t)
  await insert('workspace_load', { workspace_id: WORKSPACE_ID, hosted: 1, slots: 1, seq: notes })
  await insert('tasks', { id: 't_1', workspace_id: WORKSPACE_ID, conversation_id: 'c_1', state: 'TASK_STATE_WORKING' })
  const envelope = writeEnvelope(envelopeOf({ messageId: 's', parts: [{ text: 'Hello' }] }))
  await insert('messages', { id: 't_1', workspace_id: WORKSPACE_ID, state: 'leased', envelope })
  for (let seq = 1; seq <= notes; seq++) {
    const item = seq === 4 ? { t: 'reset' } : { t: 'note', type: 'note', text: `${seq}`, by: 'ana' }
    const row = { workspace_id: WORKSPACE_ID, seq, at_ms: 1_700_000_000_000, items: JSON.stringify([item]) }
    await insert('events', seq === 4 ? { ...row, task_id: 't_1' } : row)
  }
  return await openRoutes(t, { store })
}

test('PL-6 the activity is read from the oldest entry, 100 at a time, or as the query says', async (t) => {
  const call = await openLog(t, 101)
  const read = async (query: string) => (await call(`GET ${PATH}${query}`, { role: 'viewer' })).json
  const at = '2023-11-14T22:13:20.000Z'
  const note = { seq: 5, at, type: 'note', text: '5', by: 'ana' }
  const { activity, ...rest } = await read('')
  assert.deepEqual([activity.length, activity[4], rest], [100, note, { next: 100, first: 1 }])
  const reset = { seq: 4, at, task_id: 't_1', conversation_id: 'c_1', type: 'retry' }
  assert.deepEqual(await read('?since=3&before=9&limit=2&titles=true'), {
    activity: [reset, note],
    next: 5,
    first: 4,
    titles: { t_1: 'Hello' },
  })
  assert.deepEqual(await read('?since=2&before=6&limit=500&type=note&newest=true'), {
    activity: [{ ...note, seq: 3, text: '3' }, note],
    next: 5,
    first: 3,
  })
  assert.deepEqual(await read('?since=101'), { activity: [], next: 101 })
})

test('PL-6 a number of the query outside its range is refused by name', async (t) => {
  const call = await openLog(t, 1)
  for (const within of ['since=0', `since=${MAX}`, 'before=1', `before=${MAX}`, 'limit=1'])
    assert.equal((await call(`GET ${PATH}?${within}`)).status, 200, within)
  for (const outside of ['since=-1', 'before=0', 'limit=0', 'limit=501', 'newest=yes', 'titles=1']) {
    const { status, json } = await call(`GET ${PATH}?${outside}`)
    assert.equal(status, 400, outside)
    assert.ok(json.error.message.startsWith(outside.split('=')[0] ?? ''), json.error.message)
  }
})

test('PL-12 RE-9 no token writes a note of a type that the platform writes itself', async (t) => {
  const activity = recordPart<Activity>({ addNote: 12 })
  const call = await openRoutes(t, { activity: activity.part })
  for (const type of ['permission', 'rule', 'config_changed', 'adapter_changed', 'budget', 'reply', 'status_text'])
    for (const role of ['admin', 'member', 'workspace', 'conversation'] as const) {
      const { status, json } = await call(`POST ${PATH}`, { role, body: { type, text: 'allowed' } })
      assert.equal(status, 400, `${type} by ${role}`)
      assert.match(json.error.message, /only the platform writes/)
    }
  assert.deepEqual(activity.take(), [])
  const { status } = await call(`POST ${PATH}`, { role: 'workspace', body: { type: 'message_to_user', text: 'x' } })
  assert.equal(status, 201)
})

test('PL-6 a note is stored under the name of its author, without tokens', async (t) => {
  const activity = recordPart<Activity>({ addNote: 12 })
  const call = await openRoutes(t, { activity: activity.part })
  const add = (body: object) => call(`POST ${PATH}`, { role: 'member', body })
  const { status, json } = await add({ type: 'deployed', text: `with mol_${'a'.repeat(43)}` })
  assert.deepEqual([status, json], [201, { seq: 12 }])
  const note = { type: 'deployed', text: 'with [hidden]', by: 'member' }
  assert.deepEqual(activity.take(), [['addNote', WORKSPACE_ID, note]])
  const type = `t${'x'.repeat(63)}`
  assert.equal((await add({ type, text: 'é'.repeat(2048) })).status, 201)
  const wrong = [
    { type: `${type}x`, text: 'x' },
    { type: 'Upper', text: 'x' },
    { type: '1st', text: 'x' },
    { type: 'note', text: '' },
    { type: 'note', text: `${'é'.repeat(2048)}x` },
  ]
  for (const body of wrong) assert.equal((await add(body)).status, 400, JSON.stringify(body).slice(0, 60))
})

test('TW-8 a status line is set on the card and added to the activity; both failures are told', async (t) => {
  const activity = recordPart<Activity>({ addNote: 12 })
  const registry = recordPart<WorkspaceRegistry>({ setStatusText: {} as never })
  const call = await openRoutes(t, { activity: activity.part, registry: registry.part })
  const path = `/workspaces/${WORKSPACE_ID}/status`
  const { status, json } = await call(`PUT ${path}`, { role: 'workspace', body: { text: ' a \n\t b ' } })
  assert.deepEqual([status, json], [200, { status_text: 'a b' }])
  assert.deepEqual(registry.take(), [['setStatusText', WORKSPACE_ID, 'a b']])
  assert.deepEqual(activity.take(), [['addNote', WORKSPACE_ID, { type: 'status_text', text: 'a b', by: 'workspace' }]])
  assert.equal((await call(`PUT ${path}`, { body: { text: 'x'.repeat(500) } })).status, 200)
  assert.equal((await call(`PUT ${path}`, { body: { text: 'x'.repeat(501) } })).status, 400)
  assert.equal((await call(`PUT ${path}`, { body: { text: '' } })).json.status_text, '')
  const gone = recordPart<WorkspaceRegistry>({ setStatusText: new MoleculeError('not_found', 'gone') })
  const broken = await openRoutes(t, { activity: activity.part, registry: gone.part })
  assert.equal((await broken(`PUT ${path}`, { body: { text: 'x' } })).status, 404)
})
