/**
 * The contract of every backend as one suite: what the runtime relies on for any agent. Each backend calls it with the
 * options that cause each situation. `null` leaves out a situation that the backend cannot have (no process, no limit),
 * with the reason beside it. The name cites the requirements that it proves: BK-9 and BK-4.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn } from '../../../src/backends/backend.ts'
import { collectResponse } from '../../../src/backends/collect-response.ts'
import { createOptions } from '../../../src/backends/options.ts'
import { systemClock } from '../../../src/clock.ts'
import type { ErrorCode } from '../../../src/errors.ts'
import { silentLog } from '../../../src/log.ts'
import type { Artifact } from '../../../src/protocol/a2a.ts'
import { mergeArtifact } from '../../../src/protocol/merge-artifact.ts'
import { joinText } from '../../../src/protocol/request.ts'
import { listEvents, makeTurn, streamedText, type TurnOverrides } from '../../fakes/turns.ts'
import { markedProcesses } from '../../harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../harness/process-harness.ts'
import { waitUntil } from '../../harness/wait.ts'

type Values = Readonly<Record<string, string>>

export interface BackendSubject {
  readonly definition: BackendDefinition
  /** The reply is the text of the message, unchanged. */
  readonly echo: Values
  /** The same, in several deltas; null if the agent sends its text whole. */
  readonly streaming: Values | null
  /** Runs until it is cancelled, with a process if the backend starts any. */
  readonly endless: Values
  readonly startsProcesses: boolean
  /**
   * The agent stays between turns: after a turn, only its own process may be left. `endless` then makes the agent start
   * a child process (a tool), so that the test can see the end of the turn.
   */
  readonly staysWarm?: boolean
  /** Fails by itself. The agent's error contains `complaint`. */
  readonly failing: { readonly values: Values; readonly code: ErrorCode; readonly complaint: string }
  /** Succeeds with an empty reply, which is an error for model agents. */
  readonly empty: { readonly values: Values; readonly code: ErrorCode | null }
  /** Runs for minutes, with a timeout below one second; null if the backend has no timeout. */
  readonly slow: Values | null
  /** Prints more than 10 MiB; null if the backend reads no output of a process. */
  readonly flood: Values | null
  /** Whether a turn continues the session of the turn before. If not, the backend gives no session token. */
  readonly keepsSession: boolean
}

/** Longer than any test here. A timer of this length also keeps the process alive, which timers of a clock do not. */
const TEST_MS_MAX = 60_000
const MEBIBYTE = 1024 * 1024

export function backendContract(name: string, subject: BackendSubject): void {
  const check = (title: string, body: (harness: BackendHarness) => Promise<void>) =>
    test(`${name}: ${title}`, { timeout: TEST_MS_MAX }, async (t) => {
      const keepAlive = setTimeout(() => undefined, TEST_MS_MAX)
      t.after(() => clearTimeout(keepAlive))
      await body(createBackendHarness(t, subject))
    })

  check('text in, text out', async ({ reply }) => {
    assert.equal(await reply(subject.echo, 'hello'), 'hello')
  })

  check('a message in several parts arrives whole', async ({ events }) => {
    const { list } = await events(subject.echo, { parts: [textPart('one, '), textPart('two'), textPart('')] })
    assert.equal(doneText(list), 'one, two')
  })

  check('unicode is unchanged in both directions', async ({ reply }) => {
    const text = 'Grüße, 世界 👩‍👩‍👧‍👦 \u0000 \ufeff \r\n\t é ﷽'
    assert.equal(await reply(subject.echo, text), text)
  })

  check('a prompt of 1 MiB arrives whole', async ({ reply }) => {
    const text = 'aé漢🙂'.repeat(MEBIBYTE / 10)
    assert.ok(Buffer.byteLength(text) >= MEBIBYTE - 10)
    assert.equal(await reply(subject.echo, text), text)
  })

  check('a session continues over turns, or there is none', async ({ events }) => {
    const first = await events(subject.echo, { text: 'one' })
    const token = tokenOf(first.list)
    const second = await events(subject.echo, { text: 'two', sessionToken: token ?? 'not mine' })
    assert.equal(doneText(second.list), 'two')
    assert.equal(token !== undefined, subject.keepsSession)
    assert.equal(tokenOf(second.list) !== undefined, subject.keepsSession)
    const stranger = await events(subject.echo, { text: 'three' })
    // The token of a second turn differs from the token of a first turn.
    if (subject.keepsSession) assert.notEqual(tokenOf(second.list), tokenOf(stranger.list))
  })

  check('an error is one failed event with the text of the agent', async ({ events }) => {
    const { list } = await events(subject.failing.values, { text: 'x' })
    const error = failureIn(list)
    assert.equal(error.code, subject.failing.code)
    assert.match(error.message, new RegExp(subject.failing.complaint))
  })

  check('an empty output', async ({ events }) => {
    const { list } = await events(subject.empty.values, { text: '' })
    if (subject.empty.code !== null) assert.equal(failureIn(list).code, subject.empty.code)
    else assert.equal(doneText(list), '')
  })

  check('a cancel during a turn ends it and leaves no process', async ({ build, isAtWork }) => {
    const backend = build(subject.endless)
    const cancel = new AbortController()
    const turn = makeTurn({ text: 'x' })
    const running = listEvents(backend.run(turn, cancel.signal))
    if (subject.startsProcesses) await waitUntil(() => isAtWork(turn), 'the agent runs')
    cancel.abort()
    assert.equal(failureIn(await running).code, 'canceled')
    assert.ok(!isAtWork(turn))
  })

  check('a turn that is cancelled before its start does nothing', async ({ build, isAtWork }) => {
    const turn = makeTurn({ text: 'x' })
    const list = await listEvents(build(subject.endless).run(turn, AbortSignal.abort()))
    assert.equal(failureIn(list).code, 'canceled')
    assert.ok(!isAtWork(turn))
  })

  check('sixteen concurrent turns do not mix', async ({ build }) => {
    const backend = build(subject.streaming ?? subject.echo)
    const texts = Array.from({ length: 16 }, (_, n) => `message ${n} `.repeat(50))
    const signal = new AbortController().signal
    const replies = await Promise.all(texts.map((text) => collectResponse(backend.run(makeTurn({ text }), signal))))
    assert.deepEqual(
      replies.map((response) => joinText(response.parts)),
      texts,
    )
  })

  check('close ends the running turns, is idempotent, and starts no more', async (harness) => {
    const backend = harness.build(subject.endless)
    const signal = new AbortController().signal
    const turn = makeTurn({ text: 'x' })
    const running = listEvents(backend.run(turn, signal))
    if (subject.startsProcesses) await waitUntil(() => harness.isAtWork(turn), 'the agent runs')
    await Promise.all([backend.close(), backend.close()])
    await backend.close()
    assert.equal(harness.alive(turn), 0)
    assert.equal(failureIn(await running).code, 'canceled')
    assert.equal(failureIn(await listEvents(backend.run(makeTurn({ text: 'x' }), signal))).code, 'canceled')
  })

  check('a reader that stops in the middle leaves no process', async ({ build, isAtWork }) => {
    const turn = makeTurn({ text: 'x '.repeat(100) })
    for await (const _ of build(subject.streaming ?? subject.echo).run(turn, new AbortController().signal)) break
    assert.ok(!isAtWork(turn))
  })

  const { slow, flood, streaming } = subject
  if (streaming !== null) {
    check('streaming: several deltas that joined are the reply', async ({ events }) => {
      const text = 'one two three 漢字 four '.repeat(10)
      const { list } = await events(streaming, { text })
      assert.equal(streamedText(list), text)
      assert.equal(doneText(list), text)
      assert.ok(list.filter((event) => event.type === 'text' || event.type === 'artifact').length > 1)
    })
  }
  if (slow !== null) {
    check('a timeout ends the turn and its processes', async ({ events, isAtWork }) => {
      const { list, turn } = await events(slow, { text: 'x' })
      const error = failureIn(list)
      assert.deepEqual([error.code, error.retryable], ['timeout', true])
      assert.ok(!isAtWork(turn))
    })
  }
  if (flood !== null) {
    check('an output beyond 10 MiB ends the turn as too large', async ({ events, isAtWork }) => {
      const { list, turn } = await events(flood, { text: 'x' })
      const error = failureIn(list)
      assert.deepEqual([error.code, error.retryable], ['too_large', false])
      assert.equal(error.details['limitBytes'], 10 * MEBIBYTE)
      assert.ok(!isAtWork(turn))
    })
  }
}

interface BackendHarness {
  build(values: Values): Backend
  /** Runs one turn and checks that its stream has exactly one end. */
  events(values: Values, overrides: TurnOverrides): Promise<{ list: BackendEvent[]; turn: Turn }>
  reply(values: Values, text: string): Promise<string>
  /** The number of live processes of the turn; for a warm agent, of all its turns. */
  alive(turn: Turn): number
  /** Whether more processes are alive than a turn may leave. */
  isAtWork(turn: Turn): boolean
}

function createBackendHarness(t: TestContext, { definition, staysWarm = false }: BackendSubject): BackendHarness {
  const { processes, owner, dir } = createProcessHarness(t)
  const context: BackendContext = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const build = (values: Values): Backend => {
    const backend = definition.create(createOptions(values), context)
    assert.equal(backend.name, definition.name)
    t.after(() => backend.close())
    return backend
  }
  const events = async (values: Values, overrides: TurnOverrides) => {
    const turn = makeTurn({ workingDir: dir, ...overrides })
    const list = await listEvents(build(values).run(turn, new AbortController().signal))
    assertOneEnd(list)
    return { list, turn }
  }
  const alive = ({ id }: Turn) =>
    markedProcesses(`${owner}:`).filter(({ mark }) => staysWarm || mark === `${owner}:${id}`).length
  return {
    build,
    events,
    reply: async (values, text) => doneText((await events(values, { text })).list),
    alive,
    isAtWork: (turn) => alive(turn) > (staysWarm ? 1 : 0),
  }
}

/** Exactly one end event, and no event after it. */
function assertOneEnd(list: readonly BackendEvent[]): void {
  const ends = list.filter((event) => event.type === 'done' || event.type === 'failed')
  assert.equal(ends.length, 1)
  assert.equal(list.at(-1), ends[0])
}

function doneText(list: readonly BackendEvent[]): string {
  assertOneEnd(list)
  const end = list.at(-1)
  assert.ok(end?.type === 'done', `the turn failed: ${end?.type === 'failed' ? end.error.message : ''}`)
  const artifacts = list.reduce<Artifact[]>(
    (known, event) => (event.type === 'artifact' ? mergeArtifact(known, event) : known),
    [],
  )
  const parts = [...artifacts.flatMap((artifact) => artifact.parts), ...end.parts]
  assert.ok(parts.length > 0)
  assert.equal(end.finality, 'completed')
  return parts.map((part) => part.text ?? '').join('')
}

function failureIn(list: readonly BackendEvent[]) {
  assertOneEnd(list)
  const end = list.at(-1)
  assert.ok(end?.type === 'failed', 'the turn did not fail')
  return end.error
}

function tokenOf(list: readonly BackendEvent[]): string | undefined {
  return list.findLast((event) => event.type === 'session')?.token
}

const textPart = (text: string) => ({ type: 'text', text }) as const
