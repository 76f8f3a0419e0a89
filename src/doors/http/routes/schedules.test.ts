import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import {
  createFakePlatform,
  createFakePushContext,
  WORKSPACE_ID,
} from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { MoleculeError } from '../../../errors.ts'
import { writeReply } from '../../../protocol/stored-reply.ts'
import type { Value } from '../../../store/store.ts'
import type { Schedule, Schedules } from '../../../workspaces/schedules.ts'
import type { TokenRole } from '../../../workspaces/tokens.ts'
import type { HttpDoorOptions } from '../http.ts'

const SCHEDULE: Schedule = {
  id: 'sch_1',
  workspaceId: WORKSPACE_ID,
  name: 'report',
  cron: '0 9 * * *',
  timeZone: 'UTC',
  text: 'Report',
  missed: 'skip',
  sameConversation: false,
  paused: false,
  nextAtMs: 1_700_000_000_000,
}
const VIEW = {
  id: 'sch_1',
  workspace_id: WORKSPACE_ID,
  name: 'report',
  cron: '0 9 * * *',
  time_zone: 'UTC',
  text: 'Report',
  missed: 'skip',
  same_conversation: false,
  report_to: '',
  webhook: null,
  team: null,
  paused: false,
  next_at: '2023-11-14T22:13:20.000Z',
  note: null,
  last: null,
}
const ROW = {
  id: 'sch_1',
  workspace_id: WORKSPACE_ID,
  name: 'report',
  cron: '0 9 * * *',
  time_zone: 'UTC',
  text: 'Report',
  missed: 'skip',
  next_at: 1_700_000_000_000,
}

/** Routes on a store with the schedule, changed by `more`. */
async function openSchedules(
  t: TestContext,
  options: Partial<HttpDoorOptions>,
  more: Readonly<Record<string, Value>> = {},
) {
  const { store, insert } = openTestStore(t)
  await insert('schedules', { ...ROW, ...more })
  return { insert, call: await openRoutes(t, { ...options, store }) }
}

const PATH = `/workspaces/${WORKSPACE_ID}/schedules`

/** A clock door that counts how often it was woken. */
function createClockDoor() {
  const runs: Schedule[] = []
  let woken = 0
  const run = async (schedule: Schedule) => {
    runs.push(schedule)
    return 't_9'
  }
  return { clockDoor: { wake: () => void woken++, run }, runs, woken: () => woken }
}

test('SC-1 a schedule is made with defaults for all that is not given, and the clock learns of it', async (t) => {
  const schedules = recordPart<Schedules>({ create: SCHEDULE })
  const { clockDoor, woken } = createClockDoor()
  const { call } = await openSchedules(t, { schedules: schedules.part, clockDoor })
  const made = await call(`POST ${PATH}`, { body: { cron: ' 0 9 * * * ', text: ' Report\nall ' } })
  assert.deepEqual([made.status, made.json], [201, VIEW])
  const defaults = { timeZone: 'UTC', missed: 'skip', sameConversation: false, reportTo: '', webhook: undefined }
  const fields = { cron: '0 9 * * *', text: 'Report\nall', name: 'Report', tokenId: 'admin' }
  const draft = { workspaceId: WORKSPACE_ID, ...fields, ...defaults }
  assert.deepEqual(schedules.take(), [['create', draft]])
  assert.equal(woken(), 1)
  const names = [
    ['a\u0007b\u200bc', 'abc'],
    ['x'.repeat(61), 'x'.repeat(60)],
    ['\u0007', 'schedule'],
  ] as const
  for (const [text, name] of names) {
    await call(`POST ${PATH}`, { body: { cron: '* * * * *', text } })
    const [, draftOfText] = schedules.take()[0] ?? []
    assert.equal((draftOfText as Schedule).name, name)
  }
})

test('SC-1 a schedule with every field is stored as given; its webhook is checked and gets a secret', async (t) => {
  const url = 'https://hook.test/'
  const stored = { webhook: JSON.stringify({ url, signingSecret: 's' }), team: 'shop', note: 'the last run works' }
  const schedules = recordPart<Schedules>({ create: SCHEDULE })
  const checked: string[] = []
  const push = { ...createFakePushContext(), check: async (given: string) => void checked.push(given) }
  const { clockDoor } = createClockDoor()
  const { call } = await openSchedules(t, { schedules: schedules.part, push, clockDoor }, stored)
  const settings = {
    name: 'n',
    time_zone: 'Europe/Berlin',
    missed: 'once',
    same_conversation: true,
    team: 'shop',
    report_to: 'owners',
  }
  const { json } = await call(`POST ${PATH}`, { body: { cron: '* * * * *', text: 'x', webhook: url, ...settings } })
  assert.deepEqual(checked, [url])
  const draft = schedules.take()[0]?.[1] as Schedule
  const { webhook, ...rest } = draft
  const plain = { workspaceId: WORKSPACE_ID, cron: '* * * * *', text: 'x', name: 'n', missed: 'once', team: 'shop' }
  assert.deepEqual(rest, {
    ...plain,
    tokenId: 'admin',
    timeZone: 'Europe/Berlin',
    sameConversation: true,
    reportTo: 'owners',
  })
  assert.equal(webhook?.url, url)
  const { webhook_secret: secret, ...view } = json
  assert.equal(secret, webhook.signingSecret)
  const shown = { ...VIEW, webhook: url, team: 'shop', note: 'the last run works' }
  assert.deepEqual(view, shown)
  const listed = async (role: TokenRole) => (await call('GET /schedules', { role })).json.schedules
  assert.deepEqual([await listed('member'), await listed('viewer')], [[shown], [{ ...shown, webhook: null }]])
  const refusing = { ...push, check: async () => Promise.reject(new MoleculeError('forbidden', 'not this URL')) }
  const refused = await openRoutes(t, { schedules: schedules.part, push: refusing, clockDoor })
  assert.equal((await refused(`POST ${PATH}`, { body: { cron: '* * * * *', text: 'x', webhook: url } })).status, 403)
  assert.deepEqual(schedules.take(), [])
})

test('SC-1 GW-17 a schedule reports to owners, a chat or a person; another text, or a channel that is not there, is refused', async (t) => {
  const schedules = recordPart<Schedules>({ create: SCHEDULE, change: SCHEDULE })
  const { chat } = createFakePlatform()
  const list = async () => [{ name: 'bot', kind: 'socket', token: 't', settings: {}, createdAtMs: 0 }]
  const { call } = await openSchedules(t, {
    schedules: schedules.part,
    chat: { ...chat, channels: { ...chat.channels, list } },
  })
  const statuses = async (report_to: string) => {
    const made = await call(`POST ${PATH}`, { body: { cron: '* * * * *', text: 'x', report_to } })
    const changed = await call('PATCH /schedules/sch_1', { body: { report_to } })
    return [made.status, changed.status]
  }
  for (const right of ['owners', 'bot/-100/7', 'bot/@1001', ''])
    assert.deepEqual(await statuses(right), [201, 200], right)
  assert.equal(schedules.take().length, 8)
  for (const wrong of ['people', 'bot/', 'bot/@', '/7', 'gone/7'])
    assert.deepEqual(await statuses(wrong), [400, 400], wrong)
  assert.deepEqual(schedules.take(), [])
})

test('SC-1 each text of a schedule has its limit: the longest passes, one more is refused by name', async (t) => {
  const schedules = recordPart<Schedules>({ create: SCHEDULE })
  const { call } = await openSchedules(t, { schedules: schedules.part, push: createFakePushContext() })
  const base = { cron: '* * * * *', text: 'x' }
  const webhook = (length: number) => `https://hook.test/${'x'.repeat(length - 18)}`
  const limits: [string, number, (length: number) => string][] = [
    ['cron', 200, (length) => '*'.repeat(length)],
    ['time_zone', 60, (length) => 'z'.repeat(length)],
    ['text', 100_000, (length) => 'x'.repeat(length)],
    ['webhook', 2000, webhook],
  ]
  for (const [field, most, make] of limits) {
    const create = (length: number) => call(`POST ${PATH}`, { body: { ...base, [field]: make(length) } })
    assert.equal((await create(most)).status, 201, field)
    const { status, json } = await create(most + 1)
    assert.equal(status, 400, field)
    assert.ok(json.error.message.includes(`"${field}"`))
  }
  for (const field of ['cron', 'text'])
    assert.equal((await call(`POST ${PATH}`, { body: { ...base, [field]: ' ' } })).status, 400, field)
  assert.equal((await call(`POST ${PATH}`, { body: { ...base, missed: 'never' } })).status, 400)
})

test('SC-1 a change names only its fields; a paused schedule shows no next time', async (t) => {
  const schedules = recordPart<Schedules>({ change: SCHEDULE })
  const { clockDoor, woken } = createClockDoor()
  const { call } = await openSchedules(t, { schedules: schedules.part, clockDoor }, { paused: 1 })
  const { status, json } = await call('PATCH /schedules/sch_1', { body: { paused: true, time_zone: 'UTC' } })
  assert.deepEqual([status, json], [200, { ...VIEW, paused: true, next_at: null }])
  const all = {
    name: 'n',
    cron: '1 * * * *',
    time_zone: 'UTC',
    text: 'y',
    missed: 'once',
    same_conversation: true,
    report_to: '',
  }
  await call('PATCH /schedules/sch_1', { body: all })
  const { time_zone: timeZone, same_conversation: sameConversation, report_to: reportTo, ...rest } = all
  assert.deepEqual(schedules.take(), [
    ['change', 'sch_1', { paused: true, timeZone: 'UTC' }, 'admin'],
    ['change', 'sch_1', { ...rest, timeZone, sameConversation, reportTo }, 'admin'],
  ])
  assert.equal(woken(), 2)
})

test('SC-1 the list shows the last run of each schedule, with the beginning of its answer', async (t) => {
  const { call, insert } = await openSchedules(t, {}, { last_at: 1_700_000_001_000, last_task_id: 't_1' })
  await insert('schedules', { ...ROW, id: 'sch_2', next_at: null })
  await insert('schedules', { ...ROW, id: 'sch_3', workspace_id: 'ws_other' })
  const long = 'x'.repeat(198)
  const reply = writeReply({
    parts: [{ text: 'a' }, { raw: 'AA==' }, { text: 'b' }, { text: `${long}cut` }],
    artifacts: [],
  })
  await insert('tasks', { id: 't_1', workspace_id: WORKSPACE_ID, state: 'TASK_STATE_COMPLETED' })
  await insert('messages', { task_id: 't_1', workspace_id: WORKSPACE_ID, state: 'done', reply })
  const shown = { at: '2023-11-14T22:13:21.000Z', task_id: 't_1', state: 'TASK_STATE_COMPLETED', text: `ab${long}` }
  const second = { ...VIEW, id: 'sch_2', next_at: null }
  const all = [{ ...VIEW, last: shown }, second]
  assert.deepEqual((await call(`GET /schedules?workspace=${WORKSPACE_ID}`, { role: 'viewer' })).json, {
    schedules: all,
  })
  assert.deepEqual((await call(`GET /schedules?workspace=${WORKSPACE_ID}&after=sch_1`)).json, { schedules: [second] })
  assert.equal((await call('GET /schedules?after=sch_1')).json.schedules.length, 2)
})

test('SC-1 the last run shows why it failed, and that its task or its answer is no longer whole', async (t) => {
  const { call, insert } = await openSchedules(t, {}, { last_task_id: 't_1' })
  const lastOf = async () => (await call('GET /schedules')).json.schedules[0].last
  assert.deepEqual(await lastOf(), { at: null, task_id: 't_1', state: null, text: '' })
  const status = JSON.stringify({ parts: [{ text: 'the program is missing' }] })
  await insert('tasks', { id: 't_1', workspace_id: WORKSPACE_ID, state: 'TASK_STATE_FAILED', status_message: status })
  const failed = { at: null, task_id: 't_1', state: 'TASK_STATE_FAILED', text: 'the program is missing' }
  assert.deepEqual(await lastOf(), failed)
  await insert('messages', { task_id: 't_1', workspace_id: WORKSPACE_ID, state: 'dead', reply: '1:00000000:{}' })
  assert.deepEqual(await lastOf(), failed)
})

test('SC-1 a schedule is run now and deleted by its id', async (t) => {
  const schedules = recordPart<Schedules>({ get: SCHEDULE, remove: true })
  const { clockDoor, runs } = createClockDoor()
  const call = await openRoutes(t, { schedules: schedules.part, clockDoor })
  const ran = await call('POST /schedules/sch_1/run')
  assert.deepEqual([ran.status, ran.json, runs], [202, { task_id: 't_9' }, [SCHEDULE]])
  const deleted = await call('DELETE /schedules/sch_1')
  assert.deepEqual([deleted.status, deleted.text], [204, ''])
  assert.deepEqual(schedules.take(), [
    ['get', 'sch_1'],
    ['get', 'sch_1'],
    ['remove', 'sch_1'],
  ])
})
