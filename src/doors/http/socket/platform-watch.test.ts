import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import { silentLog } from '../../../log.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { createPlatformWatch } from './platform-watch.ts'

const workspace = (id: string, statusReason?: string) =>
  ({ id, ...(statusReason !== undefined && { statusReason }) }) as Workspace & WorkspaceLoad

function setUp() {
  const { clock, timers } = countTimers(manualClock())
  const state = { all: [workspace('a'), workspace('b')], mark: 'm1', error: undefined as Error | undefined, polls: 0 }
  const warnings: string[] = []
  const watch = createPlatformWatch({
    workspaces: {
      async all() {
        state.polls++
        if (state.error !== undefined) throw state.error
        return state.all
      },
    },
    readCards: async () => new Map(),
    readNeeds: async () => ({ count: state.all.length, mark: state.mark }),
    clock,
    log: { ...silentLog, warn: (_fields: object, message: string) => void warnings.push(message) },
  })
  const rest = async () => {
    for (let turn = 0; turn < 4; turn++) await nextTurn()
  }
  const pass = async (ms: number) => {
    clock.advance(ms)
    await rest()
  }
  return { watch, state, warnings, pass, rest, timers }
}

test('PL-7 without a watcher nothing is polled', async () => {
  const { watch, state, pass, timers } = setUp()
  watch.hint()
  await pass(10_000)
  assert.deepEqual([state.polls, timers()], [0, 0])
})

test('PL-7 while a socket watches, all workspaces are polled every second, once for all sockets', async () => {
  const { watch, state, pass, rest } = setUp()
  let calls = 0
  watch.watch(() => calls++)
  watch.watch(() => calls++)
  await rest()
  assert.deepEqual([state.polls, calls], [1, 2])
  await pass(100)
  await pass(899)
  assert.equal(state.polls, 1)
  await pass(1)
  assert.deepEqual([state.polls, calls], [2, 2], 'nothing has changed')
})

test('PL-7 after a hint the poll is soon, and polls are at least 100 ms apart', async () => {
  const { watch, state, pass, rest } = setUp()
  watch.watch(() => undefined)
  await rest()
  for (let hint = 0; hint < 10; hint++) watch.hint()
  await pass(99)
  assert.equal(state.polls, 1)
  await pass(1)
  assert.equal(state.polls, 2)
  await pass(100)
  assert.equal(state.polls, 2, 'many hints are one poll')
  watch.hint()
  await rest()
  assert.equal(state.polls, 3)
})

test('PL-7 a watcher is called after each change: of a workspace, of their number, of what needs a person', async () => {
  const { watch, state, pass, rest } = setUp()
  let calls = 0
  watch.watch(() => calls++)
  await rest()
  const poll = async () => {
    await pass(100)
    await pass(900)
    return calls
  }
  assert.equal(await poll(), 1)
  state.all = [workspace('a', 'no heartbeat for 91 s'), workspace('b')]
  assert.equal(await poll(), 2)
  state.all = [workspace('a', 'no heartbeat for 92 s'), workspace('b')]
  assert.equal(await poll(), 2, 'the seconds of a reason are no change')
  state.all = [workspace('a', 'no heartbeat for 92 s')]
  assert.equal(await poll(), 3)
  state.all = [workspace('a', 'no heartbeat for 92 s'), workspace('c')]
  assert.equal(await poll(), 4)
  state.mark = 'm2'
  assert.equal(await poll(), 5)
  assert.equal(await poll(), 5)
})

test('PL-7 a workspace keeps its fingerprint until it changes', async () => {
  const { watch, state, pass, rest } = setUp()
  watch.watch(() => undefined)
  await rest()
  const first = await watch.workspaces()
  assert.deepEqual(
    first.map((each) => [each.workspace.id, each.fingerprint]),
    [
      ['a', '{"id":"a"}'],
      ['b', '{"id":"b"}'],
    ],
  )
  state.all = [workspace('a'), workspace('b', 'gone for 5 s, then 6 s')]
  await pass(100)
  await pass(900)
  const second = await watch.workspaces()
  assert.equal(second[0], first[0])
  assert.equal(second[1]?.fingerprint, '{"id":"b","statusReason":"gone for s, then s"}')
})

test('PL-7 the last poll is what is read; without a poll the store is read once', async () => {
  const { watch, state, rest } = setUp()
  assert.deepEqual([(await watch.workspaces()).length, await watch.needsYou()], [2, { count: 2, mark: 'm1' }])
  assert.equal(state.polls, 2)
  state.all = []
  state.mark = 'm2'
  assert.deepEqual([(await watch.workspaces()).length, await watch.needsYou()], [2, { count: 2, mark: 'm1' }])
  assert.equal(state.polls, 2)
  watch.watch(() => undefined)
  await rest()
  assert.deepEqual([(await watch.workspaces()).length, await watch.needsYou()], [0, { count: 0, mark: 'm2' }])
})

test('RE-3 a poll that fails is logged, and the next one works', async () => {
  const { watch, state, warnings, pass, rest } = setUp()
  let calls = 0
  watch.watch(() => calls++)
  await rest()
  state.error = new Error('the store is gone')
  await pass(100)
  await pass(900)
  assert.deepEqual([warnings, calls], [['the workspaces could not be read; trying again'], 1])
  state.error = undefined
  state.all = []
  await pass(100)
  await pass(900)
  assert.equal(calls, 2)
})

test('RE-3 the last watcher that goes ends the polls, and the next one reads the store anew', async () => {
  const { watch, state, pass, rest, timers } = setUp()
  const calls: string[] = []
  const stopFirst = watch.watch(() => void calls.push('first'))
  const stopSecond = watch.watch(() => void calls.push('second'))
  await rest()
  stopFirst()
  state.all = []
  await pass(100)
  await rest()
  assert.deepEqual(calls, ['first', 'second', 'second'])
  stopSecond()
  await pass(100)
  await pass(5000)
  assert.deepEqual([state.polls, timers()], [2, 0])
  state.all = [workspace('x')]
  state.mark = 'm3'
  assert.deepEqual([(await watch.workspaces()).length, (await watch.needsYou()).mark], [1, 'm3'])
  const { polls } = state
  watch.watch(() => void calls.push('third'))
  await rest()
  assert.equal(state.polls, polls + 1)
})
