import assert from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { START_MS } from '../../test/harness/stores/sqlite-store.ts'
import { openTestWorkspaces } from '../../test/harness/stores/workspaces.ts'
import { within } from '../../test/harness/wait.ts'
import { type Log, silentLog } from '../log.ts'
import { createWorkspaceUpkeep, type WorkspaceUpkeepOptions } from './upkeep.ts'

const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS
const WAIT_MS = 20_000
const CALLS_MAX = 20

function openUpkeep(t: TestContext, given: Partial<WorkspaceUpkeepOptions> = {}) {
  const opened = openTestWorkspaces(t)
  const { store, homes, configs } = opened
  const calls: string[] = []
  const delays: number[] = []
  const rounds: (() => void)[] = []
  let roundEnded = Promise.withResolvers<void>()
  /** The sweep sleeps when a round has ended. */
  const clock: typeof opened.clock = {
    ...opened.clock,
    after(delayMs, callback) {
      delays.push(delayMs)
      roundEnded.resolve()
      rounds.push(callback)
      return () => undefined
    },
  }
  const prune = async () => {
    if (calls.push('prune') > CALLS_MAX) throw new Error('it is called without end')
    return 0
  }
  const log: Log = { ...silentLog, warn: (_, message) => calls.push(message) }
  const upkeep = createWorkspaceUpkeep({
    store,
    homes,
    clock,
    log,
    configs: {
      ...configs,
      async recheckAll(signal) {
        calls.push(`check all ${signal.aborted}`)
      },
    },
    memories: { prune, forgetAll: async () => 0 },
    ...given,
  })
  t.after(() => within(upkeep.stop(), 'the end of upkeep', WAIT_MS))
  const round = async () => {
    await within(roundEnded.promise, 'a round of upkeep', WAIT_MS)
    roundEnded = Promise.withResolvers<void>()
  }
  const nextRound = async () => {
    rounds.shift()?.()
    await round()
  }
  return { ...opened, homes, upkeep, calls, delays, round, nextRound }
}

test('PL-2 the files of a deleted workspace go to the trash, which is emptied after a week', async (t) => {
  const { upkeep, round, nextRound, addWorkspace, run, homes, folder, clock, delays } = openUpkeep(t)
  const [deleted, ending, live] = [await addWorkspace(), await addWorkspace(), await addWorkspace()]
  for (const id of [deleted, ending, live]) mkdirSync(homes.path(id), { recursive: true })
  await run('update workspaces set deleted_at = 1 where id in ($1, $2)', deleted, ending)
  await run('delete from workspace_load where workspace_id = $1', deleted)
  const without = await addWorkspace()
  await run('update workspaces set deleted_at = 1 where id = $1', without)
  await run('delete from workspace_load where workspace_id = $1', without)
  const folderOf = (id: string) => id.replace('ws_', 'ws-')
  upkeep.start()
  await round()
  assert.deepEqual(readdirSync(join(folder, 'workspaces')).sort(), [folderOf(ending), folderOf(live)].sort())
  assert.deepEqual(readdirSync(join(folder, 'trash')), [`${folderOf(deleted)}.${START_MS}`])
  clock.advance(7 * DAY_MS - 1)
  await nextRound()
  assert.equal(readdirSync(join(folder, 'trash')).length, 1)
  clock.advance(1)
  await nextRound()
  assert.deepEqual(readdirSync(join(folder, 'trash')), [])
  assert.deepEqual(delays, [HOUR_MS, HOUR_MS, HOUR_MS])
})

test('TW-7 expired memories and those of deleted workspaces are forgotten, slice by slice', async (t) => {
  const calls: string[] = []
  const numbers: Record<string, number[]> = { expired: [1, 1, 0] }
  const deletes = async (namespace = 'expired') => {
    calls.push(namespace)
    const left = numbers[namespace] ?? [0]
    if (left.length === 0) throw new Error('it is called without end')
    return left.shift() as number
  }
  const memories = { prune: deletes, forgetAll: deletes }
  const { upkeep, round, addWorkspace, run } = openUpkeep(t, { memories })
  const [own, team, live, none] = [
    ...[await addWorkspace(), await addWorkspace(), await addWorkspace(), await addWorkspace()],
  ] as [string, string, string, string]
  for (const id of [own, team, none]) {
    await run('update workspaces set deleted_at = 1 where id = $1', id)
    await run('delete from workspace_load where workspace_id = $1', id)
  }
  for (const namespace of [`workspace:${own}`, `team:${team}`, `workspace:${live}`, `team:${live}`, 'other'])
    await run(
      `insert into memories (id, namespace, kind, text, hash, written_by, created_at) values ($1, $1, 'memory', '', '', '', 0)`,
      namespace,
    )
  numbers[`workspace:${own}`] = [1, 1, 0]
  upkeep.start()
  await round()
  assert.deepEqual(calls, [
    ...['expired', 'expired', 'expired', `workspace:${own}`, `workspace:${own}`, `workspace:${own}`],
    ...[`team:${own}`, `workspace:${team}`, `team:${team}`],
  ])
})

test('PL-3 at start every workspace is checked and the log-ins are looked at; stop ends both', async (t) => {
  const order: string[] = []
  const logins = {
    start: () => order.push('start'),
    async stop() {
      order.push('stop')
    },
  }
  const { upkeep, round, calls } = openUpkeep(t, { logins })
  upkeep.start()
  await round()
  assert.deepEqual([order, calls], [['start'], ['check all false', 'prune']])
  await within(upkeep.stop(), 'the end of upkeep', WAIT_MS)
  assert.deepEqual(order, ['start', 'stop'])
})

test('PL-3 stop ends the checks and waits for them', async (t) => {
  const ended = Promise.withResolvers<void>()
  const seen: boolean[] = []
  const { upkeep, round, configs } = openUpkeep(t)
  upkeep.start()
  await round()
  await upkeep.stop()
  const checking = openUpkeep(t, {
    configs: {
      ...configs,
      async recheckAll(signal) {
        await ended.promise
        seen.push(signal.aborted)
      },
    },
  })
  checking.upkeep.start()
  await checking.round()
  const stopping = checking.upkeep.stop()
  ended.resolve()
  await within(stopping, 'the end of upkeep', WAIT_MS)
  assert.deepEqual(seen, [true])
})

test('RE-3 a part of upkeep that fails is logged and tried again in the next round; the other parts go on', async (t) => {
  let fails = true
  const prune = async () => {
    if (fails) throw new Error('the store is away')
    return 0
  }
  const { upkeep, round, nextRound, calls } = openUpkeep(t, {
    memories: { prune, forgetAll: async () => 0 },
  })
  upkeep.start()
  await round()
  const failed = ['check all false', 'forgetting old memories failed; it is retried later']
  assert.deepEqual(calls, failed)
  fails = false
  await nextRound()
  assert.deepEqual(calls, failed)
})
