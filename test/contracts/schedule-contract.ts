/** The contract of schedules, run on every engine: what is stored, what is due, and pages of bounded rows and bytes. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../src/clock.ts'
import { ulid } from '../../src/ids.ts'
import { type Store, sql, together } from '../../src/store/store.ts'
import { readNeeds } from '../../src/views/needs/needs.ts'
import { readSchedules, type ScheduleQuery } from '../../src/views/schedules.ts'
import { createSchedules, type Schedule, type ScheduleDraft, type Schedules } from '../../src/workspaces/schedules.ts'
import { createTokens } from '../../src/workspaces/tokens/token-store.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { hasCode } from './inbox/harness.ts'
import type { StoreUnderTest } from './store-contract.ts'

/** Noon of a day, long before the times of the other schedules. */
const START_MS = Date.UTC(2000, 0, 15, 12)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const HOURLY: Omit<ScheduleDraft, 'workspaceId'> = {
  name: 'hourly',
  cron: '0 * * * *',
  timeZone: 'UTC',
  text: 'look',
  missed: 'once',
  sameConversation: false,
}

export function scheduleContract({ name, open }: StoreUnderTest): void {
  describe(`schedules on ${name}`, () => {
    let store: Store
    let schedules: Schedules
    let dispose: () => Promise<void>
    before(async () => {
      const opened = await open()
      store = opened.store
      dispose = opened.dispose
      schedules = createSchedules({ store, nowMs: Date.now })
    })
    after(() => dispose())

    const list = (query: ScheduleQuery = {}) => readSchedules(store, query, { seesWebhooks: true })
    const idsOf = async (workspaceId: string) => (await list({ workspaceId })).schedules.map(({ id }) => id)
    /** Reads all pages; the ids. */
    const listAll = async (workspaceId?: string): Promise<string[]> => {
      const ids: string[] = []
      for (let next: string | undefined; ; ) {
        const page = await list({ workspaceId, after: next })
        ids.push(...page.schedules.map(({ id }) => id))
        next = page.next
        if (next === undefined) return ids
      }
    }

    test('SC-1 GW-17 where the answers go is stored, changed and ended, and another change keeps it', async () => {
      await store.write(() =>
        sql(`insert into workspace_load (workspace_id, hosted, slots) values ('ws_report', 0, 1)`),
      )
      const { id } = await schedules.create({ ...HOURLY, workspaceId: 'ws_report', reportTo: 'owners' })
      const reportTo = async () => (await schedules.get(id)).reportTo
      assert.equal(await reportTo(), 'owners')
      await schedules.change(id, { text: 'look again' })
      assert.equal(await reportTo(), 'owners')
      await schedules.change(id, { reportTo: 'bot/7' })
      assert.equal(await reportTo(), 'bot/7')
      await schedules.change(id, { reportTo: '' })
      assert.equal(await reportTo(), undefined)
      await schedules.remove(id)
    })

    test('PL-23 a page ends at 30 schedules or at 1 MiB of text, and the pages together have all of them', async () => {
      const add = (id: string) =>
        store.write(() => sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', [id]))
      await add('ws_small')
      await add('ws_large')
      const draft: ScheduleDraft = { ...HOURLY, workspaceId: 'ws_small' }
      const [small, large]: [string[], string[]] = [[], []]
      for (let count = 0; count < 31; count++) small.push((await schedules.create(draft)).id)
      const text = 'x'.repeat(500_000)
      for (let count = 0; count < 3; count++)
        large.push((await schedules.create({ ...draft, text, workspaceId: 'ws_large' })).id)
      const first = await list()
      assert.deepEqual([first.schedules.length, first.next], [30, small[29]])
      assert.deepEqual(await listAll(), [...small, ...large])
      assert.deepEqual(await listAll('ws_small'), small)
      assert.equal((await idsOf('ws_large')).length, 2)
      assert.deepEqual(await listAll('ws_large'), large)
    })

    /** A workspace with a clock of its own, long before that of other schedules. */
    const prepare = async () => {
      const workspaceId = `ws_${ulid()}`
      await store.write(() =>
        sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', [workspaceId]),
      )
      const clock = manualClock(START_MS)
      const own = createSchedules({ store, nowMs: clock.nowMs })
      const draft: ScheduleDraft = { ...HOURLY, workspaceId }
      /** As the admission of a run does. */
      const record = async (schedule: Schedule, taskId: string, dueAtMs?: number) => {
        const write = await own.prepareRun(schedule, dueAtMs)
        await store.write(() => together([write(taskId)]), workspaceId)
      }
      const removeAll = async () => {
        for (const id of await idsOf(workspaceId)) await own.remove(id)
      }
      return { clock, own, draft, record, removeAll, workspaceId }
    }
    const names = (all: readonly Schedule[]) => all.map(({ name: one }) => one)

    test('SC-1 a schedule is stored whole with its next time, changed alone, and removed alone', async () => {
      const { clock, own, draft, removeAll, workspaceId } = await prepare()
      const webhook = { url: 'https://example.org', signingSecret: 'secret' }
      const full = { ...draft, sameConversation: true, missed: 'skip', webhook, team: 'red' } as const
      const [plain, made] = [await own.create(draft), await own.create(full)]
      assert.match(made.id, /^sch_[0-9A-Z]{26}$/)
      assert.deepEqual(plain, { ...draft, id: plain.id, paused: false, nextAtMs: START_MS + HOUR_MS })
      assert.deepEqual(await own.get(made.id), { ...full, id: made.id, paused: false, nextAtMs: START_MS + HOUR_MS })
      clock.advance(3 * HOUR_MS)
      const change = { name: 'new', cron: '15 * * * *', timeZone: 'Asia/Kolkata', text: 'go', missed: 'skip' } as const
      const changed = await own.change(plain.id, { ...change, sameConversation: true, paused: true })
      const nextAtMs = START_MS + 3 * HOUR_MS + 45 * MINUTE_MS
      assert.deepEqual(changed, { ...plain, ...change, sameConversation: true, paused: true, nextAtMs })
      assert.deepEqual([await own.get(plain.id), await own.get(made.id)], [changed, made])
      const resumed = await own.change(plain.id, { paused: false })
      assert.deepEqual(resumed, { ...changed, paused: false })
      assert.deepEqual([await own.remove(plain.id), await own.remove(plain.id)], [true, false])
      assert.deepEqual(await idsOf(workspaceId), [made.id])
      for (const gone of [own.get(plain.id), own.change(plain.id, { name: 'x' })])
        await assert.rejects(gone, hasCode('not_found'))
      await removeAll()
    })

    test('SC-1 a schedule needs a workspace that exists, and times that can be used and that come', async () => {
      const { own, draft, workspaceId } = await prepare()
      await assert.rejects(own.create({ ...draft, workspaceId: 'ws_none' }), hasCode('not_found'))
      for (const [times, message] of [
        [{ cron: '99 * * * *' }, /^the times "99 \* \* \* \*" cannot be used: "99" is not a minute; the fields are /],
        [{ cron: '* * * * * *' }, /it has 6 fields, not 5/],
        [{ cron: '2027-01-01T00:00:00' }, /it has 1 field, not 5/],
        [{ cron: '0 24 * * *' }, /"24" is not an hour;/],
        [{ cron: '0 0 32 * *' }, /"32" is not a day of the month;/],
        [{ cron: '0 0 * foo *' }, /"foo" is not a month;/],
        [{ cron: '0 0 * * 1#6' }, /"1#6" is not a day of the week;/],
        [{ cron: '0 0 30 2 *' }, /^the times "0 0 30 2 \*" never come: no date fits the pattern$/],
        [{ timeZone: 'Nowhere' }, /^there is no time zone "Nowhere"; use a name such as UTC or Europe\/Berlin$/],
      ] as const)
        await assert.rejects(own.create({ ...draft, ...times }), { code: 'invalid_request', message })
      assert.deepEqual(await idsOf(workspaceId), [])
      const { id } = await own.create({ ...draft, cron: '0 0 29 2 *' })
      await assert.rejects(own.change(id, { cron: '0 0 30 2 *' }), hasCode('invalid_request'))
      assert.equal((await own.get(id)).cron, '0 0 29 2 *')
      await own.remove(id)
    })

    test('SC-1 due are the schedules whose time has come, without the paused ones, and the next time is that of the next one', async () => {
      const { own, draft, removeAll } = await prepare()
      const at = (minute: number, label: string) => own.create({ ...draft, name: label, cron: `${minute} * * * *` })
      const later = await at(20, 'later')
      await at(10, 'first')
      await own.change((await at(5, 'paused')).id, { paused: true })
      const due = async (minutes: number) => {
        const found = await own.due(START_MS + minutes * MINUTE_MS)
        return [names(found.due), (found.nextAtMs ?? 0) - START_MS]
      }
      assert.deepEqual(await due(9), [[], 10 * MINUTE_MS])
      assert.deepEqual(await due(10), [['first'], 20 * MINUTE_MS])
      await own.remove(later.id)
      assert.deepEqual((await due(25))[0], ['first'])
      await removeAll()
    })

    test('SC-1 at most 100 schedules are due at once, and at most 1000 are stored', async () => {
      const { own, draft, workspaceId } = await prepare()
      const [{ known } = { known: 0 }] = await store.read(() =>
        sql<{ known: number }>('select count(*) as known from schedules'),
      )
      await store.write(() =>
        sql(`insert into schedules (id, workspace_id, name, cron, time_zone, text, missed, same_conversation, next_at, created_at)
          with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${999 - Number(known)})
          select 'sch_full_' || n, '${workspaceId}', n, '* * * * *', 'UTC', '', 'once', 0, n, 0 from numbers`),
      )
      const all = await own.due(1000)
      assert.deepEqual([all.due.length, all.due[0]?.name, all.due.at(-1)?.name, all.nextAtMs], [100, '1', '100', 1000])
      assert.equal((await own.due(100)).nextAtMs, 101)
      await own.create(draft)
      await assert.rejects(own.create(draft), {
        code: 'unsupported_operation',
        message: 'there are 1000 schedules: remove some first',
      })
      await store.write(() => sql('delete from schedules where workspace_id = $1', [workspaceId]))
    })

    test('SC-1 a run is stored once with its task and the next time; a time that was left out with its reason', async () => {
      const { own, draft, clock, record, removeAll } = await prepare()
      const [made, other] = [await own.create(draft), await own.create({ ...draft, name: 'other' })]
      const dueAtMs = START_MS + HOUR_MS
      clock.advance(HOUR_MS + 1)
      await record(made, 'task 1', dueAtMs)
      const ran = { ...made, nextAtMs: START_MS + 2 * HOUR_MS, lastAtMs: dueAtMs, lastTaskId: 'task 1' }
      // Another node has advanced it already.
      await record(made, 'task 2', dueAtMs)
      assert.deepEqual([await own.get(made.id), await own.get(other.id)], [ran, other])
      clock.advance(HOUR_MS)
      await own.leaveOut(ran, START_MS + 2 * HOUR_MS, 'the last run is not done')
      const left = { ...ran, nextAtMs: START_MS + 3 * HOUR_MS, note: 'the last run is not done' }
      assert.deepEqual(await own.get(made.id), left)
      await record(left, 'by hand')
      const { note: _, ...noted } = left
      const { lastAtMs, ...byHand } = await own.get(made.id)
      assert.deepEqual({ ...byHand, lastAtMs: ran.lastAtMs }, { ...noted, lastTaskId: 'by hand' })
      assert.ok((lastAtMs ?? 0) > dueAtMs)
      // A clock that is behind the due time does not send it again.
      clock.advance(-HOUR_MS)
      await record(left, 'task 3', START_MS + 3 * HOUR_MS)
      assert.equal((await own.get(made.id)).nextAtMs, START_MS + 4 * HOUR_MS)
      await removeAll()
    })

    test('SC-1 PL-12 a schedule whose token has expired is not due any more, needs a person, and goes on when resumed', async () => {
      const { own, draft, clock, removeAll, workspaceId } = await prepare()
      const tokens = createTokens({ store, clock: systemClock, adminToken: 'the-admin-token' })
      const { id: tokenId } = await tokens.create({ name: 'ci', role: 'member', expiresInMs: HOUR_MS })
      const { id } = await own.create({ ...draft, tokenId })
      await own.create({ ...draft, name: 'of the admin', tokenId: 'admin' })
      clock.advance(HOUR_MS)
      assert.equal((await own.due(clock.nowMs())).due.length, 2)
      await store.write(() => sql('update tokens set expires_at = expires_at - $1 where id = $2', [HOUR_MS, tokenId]))
      assert.deepEqual(names((await own.due(clock.nowMs())).due), ['of the admin'])
      const needs = async (of: string) => (await readNeeds(store, { workspaceId: of, workspaces: [] })).needs_you
      const [need, ...others] = await needs(workspaceId)
      const reason = 'the schedule "hourly" is paused: the token that made it has expired'
      assert.deepEqual([need?.kind, need?.id, need?.reason, others], ['schedule', id, reason, []])
      assert.deepEqual([(await own.get(id)).paused, await needs('ws_other')], [true, []])
      const gone = { code: 'unauthenticated', message: 'the token was revoked' }
      await assert.rejects(own.change(id, { paused: false }, 'a revoked token'), gone)
      await assert.rejects(own.create({ ...draft, tokenId: 'a revoked token' }), gone)
      const resumed = await own.change(id, { paused: false }, 'admin')
      assert.deepEqual([resumed.paused, resumed.note, await needs(workspaceId)], [false, undefined, []])
      clock.advance(HOUR_MS)
      assert.equal((await own.due(clock.nowMs())).due.length, 2)
      await removeAll()
    })
  })
}
