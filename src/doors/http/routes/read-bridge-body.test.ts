import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../../../test/harness/present.ts'
import { appendSchema, askSchema, beginSchema, extendSchema, leaseSchema, settleSchema } from '../../../api/bridges.ts'
import type { Outcome, Usage } from '../../../inbox/worker.ts'
import { toAsk, toEvents, toOutcome } from './read-bridge-body.ts'

type Complete<T> = { readonly [K in keyof T]-?: T[K] }

const usage: Complete<Usage> = { inputTokens: 1, outputTokens: 2, costUsd: 0.5, durationMs: 3 }
const said = { parts: [{ text: 'why' }], metadata: { a: 1 } }
const failure = {
  code: 'exit',
  message: 'broke',
  sentence: 'it broke',
  category: 'exit_1',
  id: 'err_1',
  details: { stderr: 'x' },
}
const artifacts = [{ artifactId: 'a', name: 'n', parts: [{ text: 'made' }] }]

/** One outcome of each kind with every field: a new field of the seam does not compile until it is added here. */
const OUTCOMES: { readonly [T in Outcome['type']]: Complete<Extract<Outcome, { type: T }>> } = {
  done: {
    type: 'done',
    finality: 'completed',
    parts: [{ text: 'ok' }],
    metadata: { b: 2 },
    session: 's',
    notice: 'note',
    artifacts,
    said,
    usage,
  },
  retry: { type: 'retry', failure, afterMs: 5000, reason: 'failure', interrupted: true, parked: true, usage },
  dead: { type: 'dead', failure, artifacts, usage },
  stopped: { type: 'stopped', usage },
  released: { type: 'released', interrupted: false, parked: { afterMs: 1000, said }, usage },
}

test('CN-4 every outcome of a turn crosses the wire complete, and a field of a later version does no harm', () => {
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  for (const outcome of Object.values(OUTCOMES)) {
    const sent = JSON.parse(JSON.stringify({ key, host: 'here', outcome: { ...outcome, fromLater: true }, later: 1 }))
    assert.deepEqual(toOutcome(settleSchema.parse(sent).outcome), outcome)
  }
})

test('CN-4 a lease key with an empty id is refused', () => {
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const outcome = { type: 'stopped' }
  assert.equal(settleSchema.safeParse({ key, host: 'here', outcome }).success, true)
  for (const name of ['conversationId', 'taskId', 'messageId'])
    assert.equal(settleSchema.safeParse({ key: { ...key, [name]: '' }, host: 'here', outcome }).success, false, name)
})

test('PL-9 every list, text and time of a bridge has its limit: the largest passes, one more is refused', () => {
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const passes = {
    lease: (fields: object) =>
      leaseSchema.safeParse({ bridge: 'b', host: 'h', leases_max: 1, holding: [], wait_ms: 0, ...fields }).success,
    begin: (fields: object) => beginSchema.safeParse({ key, ...fields }).success,
    extend: (fields: object) => extendSchema.safeParse(fields).success,
    append: (fields: object) => appendSchema.safeParse({ key, from: 1, events: [], ...fields }).success,
    ask: (fields: object) => askSchema.safeParse({ key, question: { id: 'q', parts: [], ...fields } }).success,
    settle: (fields: object) =>
      settleSchema.safeParse({ key, host: 'h', outcome: { ...OUTCOMES.done, ...fields } }).success,
    retry: (afterMs: number) =>
      settleSchema.safeParse({ key, host: 'h', outcome: { ...OUTCOMES.retry, afterMs } }).success,
  }
  const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value)
  const text = { type: 'text', delta: 'x' }
  const tool = (diffs: object[]) => passes.append({ events: [{ type: 'tool', name: 'x', state: 'finished', diffs }] })
  const notes = (count: number) => Object.fromEntries(times(count, 'x').map((value, at) => [`n${at}`, value]))
  const limits: [name: string, most: number, accepts: (count: number) => boolean][] = [
    ['waits of a call, ms', 30_000, (count) => passes.lease({ wait_ms: count })],
    ['leases', 256, (count) => passes.lease({ leases_max: count })],
    ['leases that a bridge holds', 256, (count) => passes.lease({ holding: times(count, 'm.1') })],
    ['leases that a bridge extends', 256, (count) => passes.extend({ keys: times(count, key) })],
    ['characters of a text', 65_536, (count) => passes.begin({ text: 'x'.repeat(count) })],
    ['events', 10_000, (count) => passes.append({ events: times(count, text) })],
    ['notes', 100, (count) => passes.append({ notes: notes(count) })],
    ['changed files', 20, (count) => tool(times(count, { path: 'a', diff: 'x' }))],
    ['characters of a path', 1024, (count) => tool([{ path: 'x'.repeat(count), diff: 'x' }])],
    ['characters of a diff', 16_384, (count) => tool([{ path: 'a', diff: 'x'.repeat(count) }])],
    ['parts', 1000, (count) => passes.settle({ parts: times(count, { text: 'x' }) })],
    ['artifacts', 1000, (count) => passes.settle({ artifacts: times(count, artifacts[0]) })],
    ['characters of a session', 4096, (count) => passes.settle({ session: 'x'.repeat(count) })],
    ['retry after, ms', 86_400_000, (count) => passes.retry(count)],
    ['time of an ask, ms', 604_800_000, (count) => passes.ask({ timeoutMs: count })],
    [
      'characters of what a tool would do',
      262_144,
      (count) => passes.ask({ permission: { tool: 'x', subject: 'x'.repeat(count) } }),
    ],
    [
      "characters of a tool's name",
      256,
      (count) => passes.ask({ permission: { tool: 'x'.repeat(count), subject: '' } }),
    ],
  ]
  for (const [name, most, accepts] of limits) assert.deepEqual([accepts(most), accepts(most + 1)], [true, false], name)
})

test('CN-4 the parts of events are read as parts: a status message and an artifact with a broken part are refused', () => {
  const events = (given: object[]) =>
    toEvents(
      appendSchema.parse({
        key: { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 },
        from: 1,
        events: given,
      }),
    )
  const artifact = { artifactId: 'a', parts: [{ text: 'made' }] }
  const good = [
    { type: 'text', delta: 'x' },
    { type: 'status', text: 'waits', said },
    { type: 'artifact', artifact, append: false, lastChunk: true },
    { type: 'tool', name: 'Edit', subject: 'a', state: 'finished', diffs: [{ path: 'a', diff: '+x' }] },
  ]
  assert.deepEqual(present(events(good)), { from: 1, events: good })
  const broken = [{ text: 1 }]
  assert.throws(() => events([{ type: 'status', text: 'waits', said: { parts: broken } }]), /events\.0\.said\.parts\.0/)
  const unreadable = { type: 'artifact', artifact: { ...artifact, parts: broken }, append: false, lastChunk: true }
  assert.throws(() => events([unreadable]), /events\.0\.artifact\.parts\.0/)
})

const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
const lease = { bridge: 'b', host: 'h', leases_max: 1, holding: [], wait_ms: 0 }
const outcomes = {
  done: { type: 'done', finality: 'completed', parts: [], artifacts: [] },
  retry: { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false },
  released: { type: 'released', interrupted: false },
}
const settles = (outcome: object) => settleSchema.safeParse({ key, host: 'h', outcome }).success
const asks = (question: object) => askSchema.safeParse({ key, question: { id: 'q', parts: [], ...question } }).success
const toolState = (state: string) =>
  appendSchema.safeParse({ key, from: 1, events: [{ type: 'tool', name: 'x', state }] }).success

test('CN-4 a bridge may send each word of the inbox, and no other', () => {
  for (const finality of ['completed', 'input_required', 'auth_required', 'rejected'])
    assert.ok(settles({ ...outcomes.done, finality }), finality)
  for (const reason of ['failure', 'session_lost']) assert.ok(settles({ ...outcomes.retry, reason }), reason)
  for (const state of ['started', 'finished', 'failed']) assert.ok(toolState(state), state)
  assert.deepEqual(
    [settles({ ...outcomes.done, finality: 'x' }), settles({ ...outcomes.retry, reason: 'x' }), toolState('x')],
    [false, false, false],
  )
})

test('PL-9 every number and text of a bridge has its smallest value, and one less is refused', () => {
  const begins = (epoch: number) => beginSchema.safeParse({ key: { ...key, epoch } }).success
  const leases = (fields: object) => leaseSchema.safeParse({ ...lease, ...fields }).success
  const appends = (from: number) => appendSchema.safeParse({ key, from, events: [] }).success
  const parks = (afterMs: number) => settles({ ...outcomes.released, parked: { afterMs, said: { parts: [] } } })
  const smallest: [name: string, least: number, accepts: (value: number) => boolean][] = [
    ['epoch', 1, begins],
    ['leases', 0, (count) => leases({ leases_max: count })],
    ['wait', 0, (ms) => leases({ wait_ms: ms })],
    ['number of the first event', 1, appends],
    ['retry after', 0, (afterMs) => settles({ ...outcomes.retry, afterMs })],
    ['parked for', 0, parks],
    ['time of an ask', 1, (timeoutMs) => asks({ timeoutMs })],
    ['tokens', 0, (inputTokens) => settles({ ...outcomes.done, usage: { inputTokens } })],
  ]
  for (const [name, least, accepts] of smallest)
    assert.deepEqual([accepts(least), accepts(least - 1)], [true, false], name)
  assert.deepEqual(
    [settles({ ...outcomes.done, session: 's' }), settles({ ...outcomes.done, session: '' })],
    [true, false],
  )
  const permission = (tool: string) => asks({ permission: { tool, subject: '' } })
  assert.deepEqual([permission('x'), permission('')], [true, false])
  const extensions = (count: number) =>
    settles({ ...outcomes.done, artifacts: [{ artifactId: 'a', parts: [], extensions: Array(count).fill('e') }] })
  assert.deepEqual([extensions(100), extensions(101)], [true, false])
})

test('CN-4 the error about a broken part of an outcome or a question names its place', () => {
  const broken = [{ text: 1 }]
  const read = (outcome: object) => () => toOutcome(settleSchema.parse({ key, host: 'h', outcome }).outcome)
  assert.throws(read({ ...outcomes.done, parts: broken }), /outcome\.parts\.0/)
  const unreadable = [{ artifactId: 'a', parts: broken }]
  assert.throws(read({ ...outcomes.done, artifacts: unreadable }), /outcome\.artifacts\.0\.parts\.0/)
  assert.throws(read({ type: 'dead', failure, artifacts: unreadable }), /outcome\.artifacts\.0\.parts\.0/)
  assert.throws(read({ ...outcomes.done, said: { parts: broken } }), /outcome\.said\.parts\.0/)
  const ask = (question: object) => toAsk(askSchema.parse({ key, question: { id: 'q', ...question } }).question)
  assert.throws(() => ask({ parts: broken }), /question\.parts\.0/)
  const parts = [{ text: 'May I?' }]
  assert.deepEqual(ask({ parts, timeoutMs: 5 }), { id: 'q', parts, kind: 'question', timeoutMs: 5 })
  const permission = { tool: 'Bash', subject: 'ls' }
  assert.deepEqual(ask({ parts, permission }), { id: 'q', parts, kind: 'permission', ...permission })
})
