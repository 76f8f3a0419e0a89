/** Each call of the sender of webhooks changes the config that it names and no other. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { Value } from '../../store/store.ts'
import type { StoredPush } from '../delivery.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 3600_000
const configOf = (taskId: string, id: string) => ({ taskId, id, url: `https://${id}.test/`, token: 'secret' })
const pushOf = (taskId: string, id: string): StoredPush => ({
  workspaceId: 'w',
  taskId,
  id,
  version: '1.0',
  config: configOf(taskId, id),
  cursor: { seq: 4, k: 2 },
})

function openPushConfigs(t: TestContext) {
  const rows = openInboxRows(t)
  const hook = (taskId: string, id: string, row: Readonly<Record<string, Value>> = {}) =>
    rows.plant('push_configs', {
      task_id: taskId,
      id,
      workspace_id: 'w',
      version: '1.0',
      config: JSON.stringify(configOf(taskId, id)),
      state: 'active',
      seq: 4,
      k: 2,
      next_at: START_MS,
      created_at: START_MS,
      ...row,
    })
  /** `t a` is the config of a test. One has its task, one has its id, and each of both is in another state. */
  const bystanders = async (row: Readonly<Record<string, Value>> = {}) => {
    await hook('t', 'b', row)
    await hook('other', 'a', { workspace_id: 'other', ...row })
    await hook('other', 'b', { ...row, state: 'failed', reason: 'HTTP 500' })
    await hook('t', 'done', { ...row, state: 'done' })
  }
  return { ...rows, pushes: rows.local.pushConfigs, hook, bystanders }
}

test('PL-5 a webhook is stored behind the entry that the caller knows; the same id again replaces it and starts anew', async (t) => {
  const { pushes, hook, bystanders, changes } = openPushConfigs(t)
  await bystanders({ next_at: START_MS + 1 })
  const put = (id: string) => pushes.put({ workspaceId: 'w', version: '1.0', config: configOf('t', id), afterSeq: 9 })
  let stored: StoredPush | undefined
  const added = await changes(async () => (stored = await put('a')))
  assert.deepEqual(stored, { ...pushOf('t', 'a'), cursor: { seq: 9, k: 1_000_000_000 } })
  const config = JSON.stringify(configOf('t', 'a'))
  assert.deepEqual(added, {
    'push_configs t a': {
      workspace_id: 'w',
      version: '1.0',
      config,
      state: 'active',
      seq: 9,
      k: 1_000_000_000,
      tries: 0,
      next_at: START_MS,
      created_at: START_MS,
    },
  })
  const failed = { state: 'failed', reason: 'HTTP 500', tries: 10, first_failed_at: 1, worker: 'host', config: '{}' }
  await hook('t', 'c', { ...failed, next_at: START_MS + 5, created_at: START_MS + 5 })
  const replaced = await changes(() => put('c'))
  assert.deepEqual(replaced, {
    'push_configs t c': {
      config: JSON.stringify(configOf('t', 'c')),
      state: 'active',
      reason: null,
      tries: 0,
      first_failed_at: null,
      worker: null,
      next_at: START_MS,
    },
  })
  const ids = (await pushes.list('w', 't')).map(({ id }) => id)
  assert.deepEqual(ids, ['a', 'b', 'done', 'c'], 'the oldest first')
})

test('PL-5 a task has at most ten webhooks; one of them may be replaced', async (t) => {
  const { pushes, hook } = openPushConfigs(t)
  for (let count = 0; count < 9; count++) await hook('t', `hook-${count}`)
  const put = (id: string) => pushes.put({ workspaceId: 'w', version: '1.0', config: configOf('t', id), afterSeq: 0 })
  await put('tenth')
  await assert.rejects(
    put('eleventh'),
    (error) =>
      error instanceof MoleculeError &&
      error.code === 'invalid_request' &&
      error.message === 'a task has at most 10 push configurations',
  )
  await put('tenth')
  assert.equal((await pushes.list('w', 't')).length, 10)
})

test('PL-5 the webhooks of a task are listed for its workspace, each with why it was given up', async (t) => {
  const { pushes, hook, bystanders } = openPushConfigs(t)
  await hook('t', 'a')
  await bystanders()
  await hook('t', 'failed', { state: 'failed', created_at: START_MS + 1 })
  await hook('t', 'hidden', { workspace_id: 'other' })
  assert.deepEqual(await pushes.list('w', 't'), [
    ...[pushOf('t', 'a'), pushOf('t', 'b'), pushOf('t', 'done')],
    { ...pushOf('t', 'failed'), failed: '' },
  ])
  assert.deepEqual(await pushes.list('w', 'other'), [{ ...pushOf('other', 'b'), failed: 'HTTP 500' }])
})

test('PL-5 a webhook is removed by its task, its id and its workspace', async (t) => {
  const { pushes, hook, bystanders, changes } = openPushConfigs(t)
  await hook('t', 'a')
  await bystanders()
  assert.equal(await pushes.remove({ workspaceId: 'other', taskId: 't', id: 'a' }), false)
  let removed = false
  const key = { workspaceId: 'w', taskId: 't', id: 'a' }
  const changed = await changes(async () => (removed = await pushes.remove(key)))
  assert.deepEqual([removed, changed], [true, { 'push_configs t a': 'deleted' }])
  assert.equal(await pushes.remove(key), false)
})

test('PL-5 a change of a task makes its idle webhooks due, not those that are sent, fail or have ended', async (t) => {
  const { pushes, hook, bystanders, changes } = openPushConfigs(t)
  const later = { next_at: START_MS + MINUTE_MS }
  await hook('t', 'a', later)
  await hook('t', 'sent', { ...later, worker: 'host' })
  await hook('t', 'failing', { ...later, tries: 1 })
  await hook('t', 'foreign', { ...later, workspace_id: 'other' })
  await bystanders(later)
  assert.deepEqual(await changes(() => pushes.nudge('w', 't')), {
    'push_configs t a': { next_at: START_MS },
    'push_configs t b': { next_at: START_MS },
  })
})

test('PL-5 a sender claims what is due, the longest waiting first, for a minute', async (t) => {
  const { pushes, hook, bystanders, changes, clock } = openPushConfigs(t)
  await hook('t', 'a', { next_at: START_MS - 1 })
  await hook('t', 'c', { next_at: START_MS - 2 })
  await hook('other', 'c', { next_at: START_MS })
  await bystanders({ next_at: START_MS + 1 })
  await hook('ended', 'a', { state: 'done', next_at: START_MS - 3 })
  let claimed: StoredPush[] = []
  const claim = (limit: number) => changes(async () => (claimed = await pushes.claim(limit)))
  const until = { worker: 'host', next_at: START_MS + MINUTE_MS }
  assert.deepEqual(await claim(2), { 'push_configs t c': until, 'push_configs t a': until })
  assert.deepEqual(claimed, [pushOf('t', 'c'), pushOf('t', 'a')])
  assert.deepEqual(await claim(2), { 'push_configs other c': until })
  clock.advance(5)
  await hook('third', 'a', { worker: 'other-host' })
  await hook('t', 'foreign', { worker: 'other-host' })
  assert.deepEqual(await changes(() => pushes.renew([pushOf('t', 'a'), pushOf('t', 'foreign')])), {
    'push_configs t a': { next_at: START_MS + 5 + MINUTE_MS },
  })
})

test('PL-5 a sender gives back one claim, and a restart of its host gives back all of its claims', async (t) => {
  const { pushes, local, hook, bystanders, changes } = openPushConfigs(t)
  const claimed = { worker: 'host', next_at: START_MS + MINUTE_MS }
  await hook('t', 'a', claimed)
  await bystanders({ ...claimed, worker: 'other-host' })
  await hook('t', 'c', claimed)
  const free = { worker: null, next_at: START_MS }
  assert.deepEqual(await changes(() => pushes.release(pushOf('t', 'a'))), { 'push_configs t a': free })
  assert.deepEqual(await changes(() => local.recover()), { 'push_configs t c': free })
})

test('PL-5 a success moves the cursor of a webhook; one that was replaced or has ended says so', async (t) => {
  const { pushes, hook, bystanders, changes } = openPushConfigs(t)
  await bystanders()
  await hook('t', 'a', { tries: 3, first_failed_at: 1, reason: 'HTTP 500', worker: 'host' })
  const push = pushOf('t', 'a')
  const replaced = { ...push, config: { ...push.config, url: 'https://new.test/' } }
  const current = (...given: StoredPush[]) => Promise.all(given.map((each) => pushes.isCurrent(each)))
  assert.deepEqual(await current(push, replaced, pushOf('t', 'done'), pushOf('t', 'none')), [true, false, false, false])
  let answer = false
  const advance = (given: StoredPush) => changes(async () => (answer = await pushes.advance(given, { seq: 7, k: 1 })))
  assert.deepEqual(await advance(push), {
    'push_configs t a': { seq: 7, k: 1, tries: 0, first_failed_at: null, reason: null },
  })
  assert.equal(answer, true)
  assert.deepEqual(await advance(pushOf('t', 'done')), {})
  assert.equal(answer, false)
  await advance(replaced)
  assert.equal(answer, false)
})

test('PL-5 a failed call waits twice as long each time, and the tenth, or one after a day, is the last', async (t) => {
  const { pushes, hook, bystanders, changes } = openPushConfigs(t)
  await hook('t', 'a', { tries: 2, first_failed_at: START_MS - DAY_MS + 1, worker: 'host' })
  await bystanders()
  let answer: string | undefined
  const fail = (given: StoredPush) => changes(async () => (answer = await pushes.fail(given, 'HTTP 500')))
  const push = pushOf('t', 'a')
  assert.deepEqual(await fail({ ...push, config: { ...push.config, url: 'https://old.test/' } }), {})
  assert.deepEqual(await fail(pushOf('t', 'done')), {})
  assert.equal(answer, 'later')
  assert.deepEqual(await fail(push), {
    'push_configs t a': { tries: 3, reason: 'HTTP 500', worker: null, next_at: START_MS + 8000 },
  })
  assert.equal(answer, 'later')
  await hook('t', 'new', { tries: 0 })
  assert.deepEqual(await fail(pushOf('t', 'new')), {
    'push_configs t new': { tries: 1, first_failed_at: START_MS, reason: 'HTTP 500', next_at: START_MS + 2000 },
  })
  await hook('t', 'tenth', { tries: 9, first_failed_at: START_MS })
  await hook('t', 'old', { tries: 1, first_failed_at: START_MS - DAY_MS })
  for (const [id, tries, waitMs] of [['tenth', 10, 1_024_000] as const, ['old', 2, 4000] as const]) {
    assert.deepEqual(await fail(pushOf('t', id)), {
      [`push_configs t ${id}`]: { state: 'failed', tries, reason: 'HTTP 500', next_at: START_MS + waitMs },
    })
    assert.equal(answer, 'given_up')
  }
})

test('PL-5 a webhook that has every event waits a minute for the next, and ends with its own task', async (t) => {
  const { pushes, hook, bystanders, changes, message } = openPushConfigs(t)
  await message('t', { state: 'leased' })
  await message('other', { state: 'done' })
  await hook('t', 'a', { worker: 'host' })
  await bystanders()
  const waits = { next_at: START_MS + MINUTE_MS }
  assert.deepEqual(await changes(() => pushes.idle(pushOf('t', 'a'))), {
    'push_configs t a': { worker: null, ...waits },
  })
  assert.deepEqual(await changes(() => pushes.idle(pushOf('other', 'a'))), {
    'push_configs other a': { state: 'done', ...waits },
  })
  assert.deepEqual(await changes(() => pushes.idle(pushOf('other', 'b'))), {})
})
