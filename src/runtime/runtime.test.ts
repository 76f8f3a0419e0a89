import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { openLocalInbox } from '../../test/harness/stores/local-inbox.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import type { Backend, BackendEvent, Turn } from '../backends/backend.ts'
import { type WiredWorkspaces, wireWorkspaces } from '../cli/wire/wire-workspaces.ts'
import { systemClock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import type { LocalInbox } from '../inbox/local/local-inbox.ts'
import { silentLog } from '../log.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import type { Store } from '../store/store.ts'
import { readPendingAsks } from '../views/needs/pending-asks.ts'
import { onAbort } from '../wait.ts'
import { createRuntime, type Runtime } from './runtime.ts'

const HOST = 'here'

/** A turn of the fake backend, scripted by the test. */
type Play = (turn: Turn, signal: AbortSignal) => AsyncIterable<BackendEvent>

describe('the runtime', () => {
  let folder: string
  let store: Store
  let wired: WiredWorkspaces
  let localInbox: LocalInbox
  let runtime: Runtime
  let runs = 0
  let play: Play
  let stallMs: number | undefined
  const start = () => {
    const backend = (): Backend => ({
      name: 'played',
      ...(stallMs !== undefined && { stallMs }),
      validate: async () => ({ ok: true }),
      run: (turn, signal) => play(turn, signal),
      close: async () => undefined,
    })
    runtime = createRuntime({
      inbox: localInbox.inbox,
      worker: { id: `${HOST}.${++runs}`, workspaces: 'hosted' },
      clock: systemClock,
      log: silentLog,
      brief: wired.brief,
      build: backend,
    })
    runtime.start()
  }
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'molecule-runtime-'))
    store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
    const here = { store, clock: systemClock, log: silentLog, host: HOST, dataDir: folder }
    localInbox = openLocalInbox(store, systemClock, HOST)
    wired = wireWorkspaces({ ...here, inbox: localInbox, backends: { check: async () => ({ ok: true }) } })
  })
  after(async () => {
    localInbox.close()
    await store.close()
    await rm(folder, { recursive: true })
  })

  /** Sends one message to a new workspace, or to the given one, and waits for its result. */
  const send = async (options: { id?: string; contextId?: string; maxAttempts?: number } = {}) => {
    const made = options.id ?? (await wired.workspaces.create({ name: 'w', maxAttempts: options.maxAttempts ?? 4 })).id
    const letter = letterTo(made, { text: 'hello', contextId: options.contextId ?? 'c' })
    const { taskId } = await localInbox.reception.admit(letter)
    const task = await localInbox.reception.waitForResult(taskId, 20_000, AbortSignal.timeout(20_000))
    return { id: made, task }
  }
  const withRuntime = async (work: () => Promise<void>, silentMs?: number) => {
    stallMs = silentMs
    start()
    try {
      await work()
    } finally {
      await runtime.drain(0)
    }
  }
  const text = (value: string): BackendEvent => ({ type: 'done', parts: [{ text: value }], finality: 'completed' })

  test('RT-5 the next turn resumes the session, also in another runtime, and a lost one is retried once', async () => {
    const seen: (string | undefined)[] = []
    play = async function* (turn) {
      seen.push(turn.sessionToken)
      if (turn.sessionToken === 'session-2') {
        yield { type: 'failed', error: new MoleculeError('session_lost', 'never heard of it') }
        return
      }
      yield { type: 'session', token: `session-${seen.length}` }
      yield text('ok')
    }
    let id: string | undefined
    await withRuntime(async () => {
      id = (await send()).id
    })
    await withRuntime(async () => {
      await send({ id: id as string })
      const third = await send({ id: id as string })
      assert.equal(third.task?.status.state, 'TASK_STATE_COMPLETED')
      await send({ id: id as string, contextId: 'another' })
    })
    assert.deepEqual(seen, [undefined, 'session-1', 'session-2', undefined, undefined])
  })

  test('RT-5 the session of a failed turn is not stored', async () => {
    const seen: (string | undefined)[] = []
    play = async function* (turn) {
      seen.push(turn.sessionToken)
      yield { type: 'session', token: 'half-made' }
      yield { type: 'failed', error: new MoleculeError('exit', 'broke') }
    }
    await withRuntime(async () => {
      const { id } = await send()
      await send({ id })
    })
    assert.deepEqual(seen, [undefined, undefined])
  })

  /** Answers each ask as it comes. */
  const answering = async (id: string, decisions: readonly ('allowed' | 'denied')[]) => {
    const subjects: string[] = []
    for (const decision of decisions) {
      await waitUntil(async () => (await readPendingAsks(localInbox.store, { workspaceId: id })).pending.length === 1)
      const [asked] = (await readPendingAsks(localInbox.store, { workspaceId: id })).pending
      subjects.push(asked?.subject ?? '')
      await localInbox.pendingAsks.answer(asked?.id ?? '', decision, { name: 'Ana', principal: 'people', door: 'http' })
    }
    return subjects
  }

  test('AG-16 a turn asks one ask at a time, without its slot and its stall timer, and gets each answer', async () => {
    const decisions: string[] = []
    play = async function* (turn, signal) {
      if (turn.request.context_id === 'other') return yield text('meanwhile')
      const both = ['rm a', 'rm b'].map((subject) => turn.ask({ id: subject, tool: 'Bash', subject }, signal))
      decisions.push(...(await Promise.all(both)))
      yield text('asked')
    }
    const { id } = await wired.workspaces.create({ name: 'w' })
    await withRuntime(async () => {
      const { taskId } = await localInbox.reception.admit(letterTo(id, { text: 'hello', contextId: 'c' }))
      await waitUntil(async () => (await readPendingAsks(localInbox.store, { workspaceId: id })).pending.length === 1)
      assert.equal((await send({ id, contextId: 'other' })).task?.status.state, 'TASK_STATE_COMPLETED')
      await new Promise((resolve) => setTimeout(resolve, 300))
      assert.deepEqual(await answering(id, ['allowed', 'denied']), ['rm a', 'rm b'])
      await waitUntil(async () => (await localInbox.reception.task(taskId))?.status.state === 'TASK_STATE_COMPLETED')
    }, 200)
    assert.deepEqual(decisions, ['allowed', 'denied'])
  })

  test('AG-16 a cancel ends a turn that waits for an answer, and removes its ask', async () => {
    const decisions: string[] = []
    play = async function* (turn, signal) {
      decisions.push(await turn.ask({ id: 'x', tool: 'Bash', subject: 'rm a' }, signal))
      yield text('asked')
    }
    const { id } = await wired.workspaces.create({ name: 'w' })
    await withRuntime(async () => {
      const { taskId } = await localInbox.reception.admit(letterTo(id, { text: 'hello' }))
      await waitUntil(async () => (await readPendingAsks(localInbox.store, { workspaceId: id })).pending.length === 1)
      await localInbox.reception.cancel(taskId)
      await waitUntil(() => decisions.length === 1)
      assert.deepEqual(
        [decisions, (await readPendingAsks(localInbox.store, { workspaceId: id })).pending],
        [['denied'], []],
      )
      assert.equal((await localInbox.reception.task(taskId))?.status.state, 'TASK_STATE_CANCELED')
    })
  })

  test('RT-11 after an interrupted attempt the first line of the prompt says so', async () => {
    const prompts: string[] = []
    play = async function* (turn, signal) {
      prompts.push(turn.prompt)
      if (prompts.length === 1) {
        await new Promise<void>((resolve) => void onAbort(signal, resolve))
        yield { type: 'failed', error: new MoleculeError('canceled', 'killed') }
        return
      }
      yield text('done')
    }
    const { id } = await wired.workspaces.create({ name: 'w' })
    const { taskId } = await localInbox.reception.admit(letterTo(id, { text: 'hello' }))
    await withRuntime(() => waitUntil(() => prompts.length === 1))
    await withRuntime(async () => {
      const task = await localInbox.reception.waitForResult(taskId, 20_000, AbortSignal.timeout(20_000))
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
    })
    assert.equal(prompts[0], 'hello')
    assert.match(prompts[1] ?? '', /^Note: an earlier attempt .* was interrupted.*\n\nhello$/)
  })

  test('RT-4 the current task is shown during a turn and cleared after it, also on failure; several are counted', async () => {
    const gate = Promise.withResolvers<void>()
    play = async function* () {
      await gate.promise
      yield { type: 'failed', error: new MoleculeError('exit', 'broke') }
    }
    const { id } = await wired.workspaces.create({ name: 'w', maxConcurrentTasks: 2 })
    const current = async () => (await wired.workspaces.get(id))?.currentTask
    await withRuntime(async () => {
      assert.equal(await current(), undefined)
      const first = await localInbox.reception.admit(letterTo(id, { text: 'paint\n  the fence', contextId: 'a' }))
      await waitUntil(async () => (await current()) === 'paint the fence')
      const second = await localInbox.reception.admit(letterTo(id, { contextId: 'b' }))
      await waitUntil(async () => (await current()) === '2 turns running')
      gate.resolve()
      for (const { taskId } of [first, second])
        await localInbox.reception.waitForResult(taskId, 20_000, AbortSignal.timeout(20_000))
      assert.equal(await current(), undefined)
    })
  })
})
