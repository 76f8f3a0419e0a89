import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import type { Backend, BackendEvent } from '../backends/backend.ts'
import { type WiredWorkspaces, wireWorkspaces } from '../cli/wire-workspaces.ts'
import { systemClock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { createLocalInbox, type LocalInbox } from '../inbox/local/local-inbox.ts'
import { silentLog } from '../log.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { type Store, sql } from '../store/store.ts'
import { readUsage } from '../views/usage.ts'
import { keepSession } from '../workspaces/sessions.ts'
import { createRuntime, type Runtime } from './runtime.ts'

const HOST = 'here'
const MODEL = 'model-agent'
const DONE: BackendEvent = { type: 'done', parts: [{ text: 'ok' }], finality: 'completed' }

describe('usage of turns', () => {
  let folder: string
  let store: Store
  let wired: WiredWorkspaces
  let localInbox: LocalInbox
  let runtime: Runtime
  let play: () => AsyncIterable<BackendEvent>
  let runs = 0

  const open = async () => {
    store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
    const here = { store, clock: systemClock, log: silentLog, host: HOST }
    const isMetered = (name: string) => name === MODEL
    wired = wireWorkspaces({ ...here, dataDir: folder, check: async () => ({ ok: true }), isMetered })
    localInbox = createLocalInbox({ ...here, keepSession: (key, token) => keepSession(HOST, key, token) })
    const build = (): Backend => ({
      name: MODEL,
      validate: async () => ({ ok: true }),
      run: () => play(),
      close: async () => undefined,
    })
    const worker = { id: `${HOST}.${++runs}`, workspaces: 'hosted' as const }
    runtime = createRuntime({ ...here, inbox: localInbox.inbox, worker, brief: wired.brief, build })
    runtime.start()
  }
  const close = async () => {
    await runtime.drain(0)
    localInbox.close()
    await store.close()
  }
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'molecule-metering-'))
    await open()
  })
  after(async () => {
    await close()
    await rm(folder, { recursive: true })
  })

  const make = async (runtimeName: string, runtimeConfig = {}) =>
    (await wired.workspaces.create({ name: 'w', runtime: runtimeName, maxConcurrentTasks: 4, runtimeConfig })).id
  const admit = async (id: string, contextId = 'c') => {
    return (await localInbox.reception.admit(letterTo(id, { text: 'hello', contextId }))).taskId
  }
  const send = async (id: string, contextId?: string) => {
    const taskId = await admit(id, contextId)
    return await localInbox.reception.waitForResult(taskId, 20_000, AbortSignal.timeout(20_000))
  }
  const report = (workspaceId: string) => readUsage(localInbox.store, { workspaceId, days: 7, messages: 10 })

  test('RT-13 tokens, cost and time of a turn are stored, and summed by message, day and workspace', async () => {
    const id = await make(MODEL)
    play = async function* () {
      yield { type: 'usage', inputTokens: 10, outputTokens: 1 }
      yield { type: 'usage', inputTokens: 100, outputTokens: 20, costUsd: 0.25 }
      yield DONE
    }
    const first = await send(id)
    await send(id)
    const { total, days, messages } = await report(id)
    assert.deepEqual(
      [total.turns, total.unknown_turns, total.input_tokens, total.output_tokens, total.cost_usd],
      [2, 0, 200, 40, 0.5],
    )
    assert.ok(total.duration_ms !== null && total.duration_ms >= 0)
    assert.deepEqual([days.length, days[0]?.input_tokens], [1, 200])
    assert.match(days[0]?.day ?? '', /^\d{4}-\d\d-\d\d$/)
    assert.deepEqual([messages.length, messages[1]?.task_id, messages[1]?.output_tokens], [2, first?.id, 20])
  })

  test('RT-13 usage that an agent does not report is unknown, not 0; a failed turn is counted too', async () => {
    const id = await make(MODEL, { max_attempts: 1 })
    play = async function* () {
      yield { type: 'failed', error: new MoleculeError('auth_failed', 'no') }
    }
    await send(id)
    const { total } = await report(id)
    const { duration_ms: durationMs, ...rest } = total
    assert.deepEqual(rest, {
      turns: 1,
      unknown_turns: 1,
      unknown_cost_turns: 1,
      input_tokens: null,
      output_tokens: null,
      cost_usd: null,
    })
    assert.ok(durationMs !== null)
    const none = (await report(await make(MODEL))).total
    assert.deepEqual([none.turns, none.input_tokens, none.duration_ms], [0, null, null])
  })

  test('RT-13 a turn that is not metered leaves no row and has no limit, unless it reports usage', async () => {
    const id = await make('exec', { max_turns_per_hour: 1 })
    play = async function* () {
      yield DONE
    }
    for (let n = 0; n < 3; n++) assert.equal((await send(id))?.status.state, 'TASK_STATE_COMPLETED')
    assert.equal((await report(id)).total.turns, 0)
    play = async function* () {
      yield { type: 'usage', inputTokens: 3 }
      yield DONE
    }
    await send(id)
    const { total } = await report(id)
    assert.deepEqual([total.turns, total.input_tokens, total.output_tokens, total.unknown_turns], [1, 3, null, 1])
  })

  test('RT-13 turns over max_turns_per_hour wait with the reason, across a restart, and run later', async () => {
    const id = await make(MODEL, { max_turns_per_hour: 2 })
    let turns = 0
    play = async function* () {
      turns += 1
      yield DONE
    }
    // Three conversations at once: only one of them gets the last turn of the hour.
    const tasks = await Promise.all([admit(id, 'a'), admit(id, 'b'), admit(id, 'c')])
    const shown = () => Promise.all(tasks.map((taskId) => localInbox.reception.task(taskId)))
    const parked = async () =>
      (await shown()).find((task) => /max_turns_per_hour/.test(task?.status.message?.parts[0]?.text ?? ''))
    await waitUntil(async () => (await parked()) !== undefined && turns === 2)
    const waiting = await parked()
    assert.match(
      waiting?.status.message?.parts[0]?.text ?? '',
      /the 2 turns an hour .* are used up .*, next in \d+ min/,
    )
    assert.equal(waiting?.status.message?.metadata?.['code'], 'waiting')
    await close()
    await open()
    // Due again within the hour: the restart still knows the turns.
    await waitUntil(async () => (await store.read(() => countDue(id))) === 0)
    await store.write(() => makeDue(id))
    await localInbox.queues.resume(id)
    await waitUntil(async () => (await store.read(() => countDue(id))) === 0)
    assert.equal(turns, 2)
    await store.write(() => passAnHour(id))
    await localInbox.queues.resume(id)
    const end = await localInbox.reception.waitForResult(waiting?.id ?? '', 20_000, AbortSignal.timeout(20_000))
    assert.deepEqual([end?.status.state, turns], ['TASK_STATE_COMPLETED', 3])
  })
})

function* countDue(id: string) {
  const rows = yield* sql('select id from conversations where workspace_id = $1 and ready_at <= now_ms()', [id])
  return rows.length
}

function* makeDue(id: string) {
  yield* sql('update messages set ready_at = now_ms() where workspace_id = $1 and settled_at is null', [id])
  yield* sql('update conversations set ready_at = now_ms() where workspace_id = $1 and ready_at is not null', [id])
}

function* passAnHour(id: string) {
  yield* sql('update turn_usage set ended_at = ended_at - 3600000 where workspace_id = $1', [id])
  yield* makeDue(id)
}
