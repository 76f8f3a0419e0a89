import assert from 'node:assert/strict'
import test from 'node:test'
import { appendSchema, askSchema, beginSchema, leaseSchema, settleSchema } from '../../../api/bridges.ts'
import { toAsk, toOutcome } from './read-bridge-body.ts'

const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
const lease = { bridge: 'b', host: 'h', leases_max: 1, holding: [], wait_ms: 0 }
const failure = { code: 'exit', message: 'broke' }
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
  const artifacts = [{ artifactId: 'a', parts: broken }]
  assert.throws(read({ ...outcomes.done, artifacts }), /outcome\.artifacts\.0\.parts\.0/)
  assert.throws(read({ type: 'dead', failure, artifacts }), /outcome\.artifacts\.0\.parts\.0/)
  assert.throws(read({ ...outcomes.done, said: { parts: broken } }), /outcome\.said\.parts\.0/)
  const ask = (question: object) => toAsk(askSchema.parse({ key, question: { id: 'q', ...question } }).question)
  assert.throws(() => ask({ parts: broken }), /question\.parts\.0/)
  const parts = [{ text: 'May I?' }]
  assert.deepEqual(ask({ parts, timeoutMs: 5 }), { id: 'q', parts, kind: 'question', timeoutMs: 5 })
  const permission = { tool: 'Bash', subject: 'ls' }
  assert.deepEqual(ask({ parts, permission }), { id: 'q', parts, kind: 'permission', ...permission })
})
