import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { together } from '../store/store.ts'
import { createSchedules, nextTime, type Schedule, type ScheduleDraft } from './schedules.ts'
import { createTokens } from './tokens/token-store.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

async function openSchedules(t: TestContext) {
  const opened = openTestStore(t)
  const { store, clock } = opened
  const workspaceId = await opened.addWorkspace()
  const draft: ScheduleDraft = {
    workspaceId,
    name: 'hourly',
    cron: '0 * * * *',
    timeZone: 'UTC',
    text: 'look',
    missed: 'once',
    sameConversation: false,
  }
  const schedules = createSchedules({ store, nowMs: () => clock.nowMs() })
  /** As the admission of a run does. */
  const record = async (schedule: Schedule, taskId: string, dueAtMs?: number) => {
    const write = await schedules.prepareRun(schedule, dueAtMs)
    await store.write(() => together([write(taskId)]), workspaceId)
  }
  return { ...opened, draft, schedules, record }
}

const byName = (all: readonly Schedule[]) => all.map(({ name }) => name)

test('SC-1 a schedule is stored whole, with its next time, and read back', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  const webhook = { url: 'https://example.org', signingSecret: 'secret' }
  const full = { ...draft, sameConversation: true, missed: 'skip', webhook, team: 'red' } as const
  const plain = await schedules.create(draft)
  const made = await schedules.create(full)
  assert.match(made.id, /^sch_[0-9A-Z]{26}$/)
  assert.deepEqual(plain, { ...draft, id: plain.id, paused: false, nextAtMs: START_MS + HOUR_MS })
  assert.deepEqual(made, { ...full, id: made.id, paused: false, nextAtMs: START_MS + HOUR_MS })
  assert.deepEqual([await schedules.get(plain.id), await schedules.get(made.id)], [plain, made])
  await assert.rejects(schedules.get('sch_none'), { code: 'not_found', message: 'there is no schedule sch_none' })
})

test('SC-1 schedules are listed oldest first, of one workspace or of all', async (t) => {
  const { schedules, draft, addWorkspace } = await openSchedules(t)
  const other = await addWorkspace()
  await schedules.create({ ...draft, name: 'first' })
  await schedules.create({ ...draft, name: 'second', workspaceId: other })
  await schedules.create({ ...draft, name: 'third' })
  assert.deepEqual(byName((await schedules.list()).schedules), ['first', 'second', 'third'])
  assert.deepEqual(byName((await schedules.list({ workspaceId: draft.workspaceId })).schedules), ['first', 'third'])
  assert.deepEqual(byName((await schedules.list({ workspaceId: other })).schedules), ['second'])
})

test('SC-1 a schedule needs a workspace that exists, and times that can be used', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  await assert.rejects(schedules.create({ ...draft, workspaceId: 'ws_none' }), {
    code: 'not_found',
    message: 'there is no workspace ws_none',
  })
  const refused = await schedules.create({ ...draft, cron: '99 * * * *' }).catch((error: unknown) => error)
  const { code, message, details } = refused as { code: string; message: string; details: object }
  assert.deepEqual([code, details], ['invalid_request', { path: 'cron' }])
  assert.match(message, /^the times "99 \* \* \* \*" cannot be used: "99" is not a minute; the fields are /)
  for (const timeZone of ['Nowhere', '']) {
    await assert.rejects(schedules.create({ ...draft, timeZone }), {
      code: 'invalid_request',
      message: `there is no time zone "${timeZone}"; use a name such as UTC or Europe/Berlin`,
      details: { path: 'time_zone' },
    })
  }
  for (const [cron, problem] of [
    ['* * * * * *', /it has 6 fields, not 5/],
    ['@reboot', /it has 1 field, not 5/],
    ['2027-01-01T00:00:00', /it has 1 field, not 5/],
    ['0 0 32 * *', /"32" is not a day of the month;/],
    ['0 0 * 13 *', /"13" is not a month;/],
    ['0 0 * foo *', /"foo" is not a month;/],
    ['0 24 * * *', /"24" is not an hour;/],
    ['5/10 * * * *', /"5\/10" is not a minute;/],
    ['0 0 * * 1#6', /"1#6" is not a day of the week;/],
    ['0 0 1 1 *:', /"\*:" is not a day of the week;/],
  ] as const) {
    await assert.rejects(schedules.create({ ...draft, cron }), problem)
  }
  const { id, nextAtMs } = await schedules.create({ ...draft, cron: '@daily' })
  assert.equal(new Date(nextAtMs ?? 0).getUTCHours(), 0)
  await schedules.remove(id)
  assert.deepEqual(await schedules.list(), { schedules: [] })
})

test('SC-1 the next time is in the time zone of the schedule; times that never come are refused', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  const daily = { cron: '30 9 * * *', timeZone: 'Asia/Tokyo' }
  assert.equal(await nextTime(daily, START_MS), Date.UTC(2026, 0, 16, 0, 30))
  const never = { cron: '0 0 30 2 *' }
  const refusal = { code: 'invalid_request', message: 'the times "0 0 30 2 *" never come: no date fits the pattern' }
  await assert.rejects(schedules.create({ ...draft, ...never }), refusal)
  const { id } = await schedules.create({ ...draft, cron: '0 0 29 2 *' })
  await assert.rejects(schedules.change(id, never), refusal)
  assert.equal((await schedules.get(id)).cron, '0 0 29 2 *')
})

test('SC-1 there are at most 1000 schedules', async (t) => {
  const { schedules, draft, run } = await openSchedules(t)
  await run(`insert into schedules (id, workspace_id, name, cron, time_zone, text, missed, same_conversation, created_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 999)
    select 'sch_' || n, 'ws_1', '', '* * * * *', 'UTC', '', 'once', 0, 0 from numbers`)
  await schedules.create(draft)
  await assert.rejects(schedules.create(draft), {
    code: 'unsupported_operation',
    message: 'there are 1000 schedules: remove some first',
  })
})

test('SC-1 a change is written to that schedule alone and starts from the present time', async (t) => {
  const { schedules, draft, clock } = await openSchedules(t)
  const [first, second] = [await schedules.create(draft), await schedules.create({ ...draft, name: 'other' })]
  clock.advance(3 * HOUR_MS)
  const change = { name: 'new', cron: '15 * * * *', timeZone: 'Asia/Kolkata', text: 'go', missed: 'skip' } as const
  const changed = await schedules.change(first.id, { ...change, sameConversation: true, paused: true })
  assert.deepEqual(changed, {
    ...draft,
    ...change,
    id: first.id,
    sameConversation: true,
    paused: true,
    nextAtMs: START_MS + 3 * HOUR_MS + 45 * MINUTE_MS,
  })
  assert.deepEqual([await schedules.get(first.id), await schedules.get(second.id)], [changed, second])
  const resumed = await schedules.change(first.id, { paused: false, sameConversation: false })
  assert.deepEqual(resumed, { ...changed, paused: false, sameConversation: false })
  await assert.rejects(schedules.change('sch_none', { name: 'x' }), { code: 'not_found' })
})

test('SC-1 a removed schedule is gone, and no other', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  const [first] = [await schedules.create(draft), await schedules.create({ ...draft, name: 'other' })]
  assert.deepEqual([await schedules.remove(first.id), await schedules.remove(first.id)], [true, false])
  assert.deepEqual(byName((await schedules.list()).schedules), ['other'])
})

test('SC-1 a schedule that was removed while it is changed is not found', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  const { id } = await schedules.create(draft)
  const changing = schedules.change(id, { name: 'new' })
  const removing = schedules.remove(id)
  await assert.rejects(changing, { code: 'not_found', message: `there is no schedule ${id}` })
  assert.equal(await removing, true)
})

test('SC-1 due are the schedules whose time has come, without the paused ones, and the next time is that of the next one', async (t) => {
  const { schedules, draft } = await openSchedules(t)
  const at = async (minute: number, name: string) => schedules.create({ ...draft, name, cron: `${minute} * * * *` })
  const later = await at(20, 'later')
  await at(10, 'first')
  const paused = await at(5, 'paused')
  await schedules.change(paused.id, { paused: true })
  const due = async (minutes: number) => {
    const found = await schedules.due(START_MS + minutes * MINUTE_MS)
    return [byName(found.due), (found.nextAtMs ?? 0) - START_MS]
  }
  assert.deepEqual(await due(9), [[], 10 * MINUTE_MS])
  assert.deepEqual(await due(10), [['first'], 20 * MINUTE_MS])
  // Nothing is left after these: the caller looks again at once, as their next times are not known yet.
  assert.deepEqual(await due(25), [['first', 'later'], 25 * MINUTE_MS])
  await schedules.remove(later.id)
  assert.deepEqual(await due(25), [['first'], 25 * MINUTE_MS])
})

test('SC-1 at most 100 schedules are due at once; the others are due at the next look', async (t) => {
  const { schedules, run } = await openSchedules(t)
  await run(`insert into schedules (id, workspace_id, name, cron, time_zone, text, missed, same_conversation, next_at, created_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 102)
    select 'sch_' || n, 'ws_1', n, '* * * * *', 'UTC', '', 'once', 0, n, 0 from numbers`)
  const all = await schedules.due(1000)
  assert.deepEqual([all.due.length, all.due[0]?.name, all.due.at(-1)?.name, all.nextAtMs], [100, '1', '100', 1000])
  const some = await schedules.due(100)
  assert.deepEqual([some.due.length, some.nextAtMs], [100, 101])
})

test('SC-1 a run is stored with its task and the next time; a time that was left out with its reason', async (t) => {
  const { schedules, draft, clock, record } = await openSchedules(t)
  const [made, other] = [await schedules.create(draft), await schedules.create({ ...draft, name: 'other' })]
  const dueAtMs = START_MS + HOUR_MS
  clock.advance(HOUR_MS + 1)
  await record(made, 'task 1', dueAtMs)
  const ran = { ...made, nextAtMs: START_MS + 2 * HOUR_MS, lastAtMs: dueAtMs, lastTaskId: 'task 1' }
  assert.deepEqual([await schedules.get(made.id), await schedules.get(other.id)], [ran, other])
  // Another node has advanced it already.
  await record(made, 'task 2', dueAtMs)
  assert.deepEqual(await schedules.get(made.id), ran)
  clock.advance(HOUR_MS)
  await schedules.leaveOut(ran, START_MS + 2 * HOUR_MS, 'the last run is not done')
  const left = { ...ran, nextAtMs: START_MS + 3 * HOUR_MS, note: 'the last run is not done' }
  assert.deepEqual(await schedules.get(made.id), left)
  // A clock that is behind the due time does not send it again.
  clock.advance(-HOUR_MS)
  await record(left, 'task 3', START_MS + 3 * HOUR_MS)
  const { note: _, ...noted } = left
  const last = { ...noted, nextAtMs: START_MS + 4 * HOUR_MS, lastAtMs: START_MS + 3 * HOUR_MS, lastTaskId: 'task 3' }
  assert.deepEqual(await schedules.get(made.id), last)
})

test('SC-1 a run by hand is stored and removes the note; the next time stays', async (t) => {
  const { schedules, draft, clock, record } = await openSchedules(t)
  const [made, other] = [await schedules.create(draft), await schedules.create({ ...draft, name: 'other' })]
  await schedules.leaveOut(made, START_MS + HOUR_MS, 'left out')
  clock.advance(5)
  await record(made, 'task')
  assert.deepEqual(await schedules.get(made.id), {
    ...made,
    nextAtMs: START_MS + 2 * HOUR_MS,
    lastAtMs: START_MS + 5,
    lastTaskId: 'task',
  })
  assert.deepEqual(await schedules.get(other.id), other)
})

test('SC-1 PL-12 a schedule whose token has expired is not due any more, needs a person, and goes on when resumed', async (t) => {
  const { schedules, draft, store, clock } = await openSchedules(t)
  const tokens = createTokens({ store, clock, adminToken: 'the-admin-token' })
  const { id: tokenId } = await tokens.create({ name: 'ci', role: 'member', expiresInMs: HOUR_MS })
  const { id } = await schedules.create({ ...draft, tokenId })
  await schedules.create({ ...draft, name: 'of the admin', tokenId: 'admin' })
  await schedules.create({ ...draft, name: 'of an earlier version' })
  clock.advance(HOUR_MS)
  const { due } = await schedules.due(clock.nowMs())
  assert.deepEqual(byName(due), ['of the admin', 'of an earlier version'])
  const [stopped, ...others] = await schedules.stopped(draft.workspaceId)
  assert.deepEqual([stopped?.id, stopped?.paused, stopped?.stoppedAtMs], [id, true, clock.nowMs()])
  assert.deepEqual([stopped?.note, others], ['the token that made it has expired', []])
  assert.deepEqual(await schedules.stopped('ws_other'), [])
  const gone = { code: 'unauthenticated', message: 'the token was revoked' }
  await assert.rejects(schedules.change(id, { paused: false }, 'a revoked token'), gone)
  await assert.rejects(schedules.create({ ...draft, tokenId: 'a revoked token' }), gone)
  const resumed = await schedules.change(id, { paused: false }, 'admin')
  assert.deepEqual([resumed.paused, resumed.note, resumed.stoppedAtMs], [false, undefined, undefined])
  clock.advance(HOUR_MS)
  assert.equal((await schedules.due(clock.nowMs())).due.length, 3)
})
