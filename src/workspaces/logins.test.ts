import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore } from '../../test/harness/stores/sqlite-store.ts'
import { within } from '../../test/harness/wait.ts'
import type { Outcome } from '../inbox/worker.ts'
import { type Log, silentLog } from '../log.ts'
import { sql } from '../store/store.ts'
import { createHomes } from './homes/homes.ts'
import { createLogins, type LoginCheck } from './logins.ts'
import { presenceOf } from './presence.ts'

const WAIT_MS = 20_000
const FOUND: LoginCheck = { fingerprint: 'a', refused: 'refused: run it' }
const MISSING: LoginCheck = { ...FOUND, problem: 'missing: run it' }
const ANSWERED: Outcome = { type: 'done', finality: 'completed', parts: [], artifacts: [] }
const failedWith = (code: string): Outcome => ({ type: 'dead', failure: { code, message: '' } })

function openLogins(t: TestContext) {
  const opened = openTestStore(t)
  /** By the id of the workspace, which is in the path of its folder. */
  const found = new Map<string, LoginCheck | Error | undefined>()
  const checked: string[] = []
  const hooks: { onCheck?: () => void } = {}
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (_, message) => warnings.push(message) }
  let roundEnded = Promise.withResolvers<void>()
  const delays: number[] = []
  const timers: (() => void)[] = []
  /** A round has ended when the loop sleeps. */
  const clock: typeof opened.clock = {
    ...opened.clock,
    after(delayMs, callback) {
      delays.push(delayMs)
      timers.push(callback)
      roundEnded.resolve()
      return () => undefined
    },
  }
  const logins = createLogins({
    store: opened.store,
    clock,
    log,
    homes: createHomes(opened.folder),
    check(runtime, options) {
      const id = String(options['config_dir']).replace(/^.*ws-/, 'ws_')
      checked.push(`${runtime} ${id}`)
      hooks.onCheck?.()
      const result = found.get(id)
      if (result instanceof Error) throw result
      return result
    },
  })
  t.after(() => logins.stop())
  const add = async (check?: LoginCheck | Error, hosted = 1) => {
    const id = await opened.addWorkspace({ hosted })
    await opened.run('update workspaces set settings = $2 where id = $1', id, '{"runtimeConfig":{}}')
    found.set(id, check)
    return id
  }
  const stateOf = async (id: string) => {
    const [row] = await opened.run('select login_state from workspaces where id = $1', id)
    return typeof row?.['login_state'] === 'string' ? JSON.parse(row['login_state']) : null
  }
  const round = async () => {
    await within(roundEnded.promise, 'a look at all workspaces', WAIT_MS)
    roundEnded = Promise.withResolvers<void>()
  }
  const nextRound = async () => {
    timers.shift()?.()
    await round()
  }
  return { ...opened, logins, found, hooks, checked, warnings, add, stateOf, round, nextRound, delays }
}

test('AG-1 a look at one workspace stores the problem of its log-in, and removes it once it is found', async (t) => {
  const { logins, add, stateOf, checked, found } = openLogins(t)
  const [id, other] = [await add(MISSING), await add(MISSING)]
  await logins.refresh(id)
  assert.deepEqual([await stateOf(id), await stateOf(other)], [{ fingerprint: 'a', problem: 'missing: run it' }, null])
  assert.deepEqual(checked, [`mock ${id}`])
  found.set(id, { ...FOUND, fingerprint: 'b' })
  await logins.refresh(id)
  assert.equal(await stateOf(id), null)
})

test('AG-1 a bridge looks at the log-in of its own machine, and a backend without a log-in has no state', async (t) => {
  const { logins, add, stateOf, checked } = openLogins(t)
  const [remote, plain] = [await add(MISSING, 0), await add(undefined)]
  await logins.refresh(remote)
  await logins.refresh(plain)
  assert.deepEqual([await stateOf(remote), await stateOf(plain), checked], [null, null, [`mock ${plain}`]])
})

test('AG-1 a turn whose log-in is refused stores the problem; an answered turn removes it', async (t) => {
  const { logins, add, stateOf, checked } = openLogins(t)
  const [id, other] = [await add(FOUND), await add(FOUND)]
  await logins.refresh(id)
  /** Looks are made one after the other, so this one ends after those before it. */
  const ended = () => logins.refresh(other)
  logins.turnEnded(id, failedWith('auth_failed'))
  await ended()
  const refused = { fingerprint: 'a', learned: 'refused', problem: 'refused: run it' }
  assert.deepEqual(await stateOf(id), refused)
  await logins.refresh(id)
  assert.deepEqual(await stateOf(id), refused, 'the log-in has not changed')
  logins.turnEnded(id, ANSWERED)
  await ended()
  assert.deepEqual([await stateOf(id), await stateOf(other)], [null, null])
  const looks = checked.length
  // These say nothing new.
  logins.turnEnded(id, ANSWERED)
  logins.turnEnded(id, failedWith('exit'))
  logins.turnEnded(id, { type: 'stopped' })
  await logins.refresh(other)
  assert.equal(checked.length, looks + 1)
})

test('AG-1 a refused log-in that is refused again costs nothing; one that heals by itself is looked at after the next refusal', async (t) => {
  const { logins, add, stateOf, checked, found } = openLogins(t)
  const [id, other] = [await add(MISSING), await add(FOUND)]
  await logins.refresh(id)
  logins.turnEnded(id, failedWith('auth_failed'))
  await logins.refresh(other)
  assert.deepEqual(checked, [`mock ${id}`, `mock ${other}`])
  found.set(id, FOUND)
  await logins.refresh(id)
  logins.turnEnded(id, failedWith('auth_failed'))
  await logins.refresh(other)
  assert.equal((await stateOf(id))?.problem, 'refused: run it')
})

test('AG-1 all hosted workspaces are looked at at start and then every ten seconds, until stop', async (t) => {
  const { logins, add, stateOf, found, round, nextRound, delays, checked } = openLogins(t)
  const [id, remote] = [await add(FOUND), await add(MISSING, 0)]
  logins.start()
  await round()
  assert.deepEqual([await stateOf(id), checked], [null, [`mock ${id}`]])
  found.set(id, MISSING)
  await nextRound()
  assert.deepEqual([(await stateOf(id))?.problem, await stateOf(remote)], ['missing: run it', null])
  assert.deepEqual(delays, [10_000, 10_000])
  await within(logins.stop(), 'the end of the looks', WAIT_MS)
  logins.turnEnded(id, ANSWERED)
  await logins.refresh(remote)
  assert.equal(checked.length, 2)
})

test('AG-1 a look that fails is logged, and the next one is made', async (t) => {
  const { logins, add, stateOf, warnings, found, round, nextRound } = openLogins(t)
  const id = await add(new Error('the file cannot be read'))
  await logins.refresh(id)
  assert.deepEqual(warnings, ['a log-in could not be checked'])
  logins.start()
  await round()
  found.set(id, MISSING)
  await nextRound()
  assert.deepEqual([warnings.length, (await stateOf(id))?.problem], [2, 'missing: run it'])
})

test('AG-1 a round ends at the next workspace when the platform stops, and stop waits for it', async (t) => {
  const { logins, add, checked, hooks, store } = openLogins(t)
  const ids = [await add(MISSING), await add(MISSING), await add(MISSING)]
  const stopped = new Promise<void>((resolve, reject) => {
    hooks.onCheck = () => {
      logins.stop().then(resolve, reject)
    }
  })
  logins.start()
  await within(stopped, 'the end of the looks', WAIT_MS)
  const rows = await store.read(() => sql('select id from workspaces where login_state is not null'))
  assert.deepEqual([rows, checked], [[{ id: ids[0] }], [`mock ${ids[0]}`]])
})

test('AG-1 CN-3 a workspace whose agent is not logged in needs a login, unless it is paused, failed or offline', () => {
  const hosted = { nowMs: 1000, stored: 'online', paused: false, hosted: true } as const
  const loginState = JSON.stringify({ fingerprint: 'a', problem: 'run "claude"' })
  assert.deepEqual(presenceOf({ ...hosted, loginState }), { status: 'needs_login', statusReason: 'run "claude"' })
  assert.equal(presenceOf({ ...hosted, loginState: '{"fingerprint":"a"}' }).status, 'online')
  assert.equal(presenceOf({ ...hosted, loginState, paused: true }).status, 'paused')
  assert.equal(presenceOf({ ...hosted, loginState, stored: 'failed' }).status, 'failed')
  const report = { runtime_state: 'needs_login', problem: 'run "codex login"' }
  const bridged = { ...hosted, hosted: false, heardAtMs: 1000, report }
  assert.deepEqual(presenceOf({ ...bridged, loginState }), {
    status: 'needs_login',
    statusReason: 'run "codex login"',
  })
  assert.equal(presenceOf({ ...bridged, nowMs: 10_000_000 }).status, 'offline')
})
