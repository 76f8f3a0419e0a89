import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ActivityView } from '../../../../src/client/views.ts'
import { buildTurns } from './timeline.ts'

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 12, 13, 52, seconds)).toISOString()
const entry = (seq: number, more: Partial<ActivityView>): ActivityView => ({
  seq,
  at: at(seq),
  type: 'status',
  task_id: 't1',
  ...more,
})
const working = (seq: number) => entry(seq, { state: 'TASK_STATE_WORKING' })
const tool = (seq: number, state: string, subject = 'npm test') =>
  entry(seq, { type: 'tool', name: 'Bash', subject, state })

test('CV-4 the start and the end of a tool are one step with its duration; a failure says so', () => {
  const [turn] = buildTurns([
    working(1),
    tool(2, 'started'),
    tool(3, 'started', 'ls'),
    tool(5, 'failed'),
    tool(6, 'finished', 'ls'),
  ])
  assert.deepEqual(
    turn?.steps.map(({ verb, subject, look, tookMs, note }) => [verb, subject, look, tookMs, note]),
    [
      ['Began', undefined, 'sent', undefined, undefined],
      ['Ran', 'npm test', 'failed', 3000, 'failed'],
      ['Ran', 'ls', 'done', 3000, undefined],
    ],
  )
})

test('CV-4 a tool without an end runs while the turn does, and has ended with it', () => {
  const begun = [working(1), tool(2, 'started')]
  const looks = (entries: readonly ActivityView[]) => buildTurns(entries)[0]?.steps.map(({ look }) => look)
  assert.deepEqual(looks(begun), ['sent', 'running'])
  assert.deepEqual(looks([...begun, entry(3, { state: 'TASK_STATE_COMPLETED' })]), ['sent', 'done'])
  for (const state of ['TASK_STATE_CANCELED', 'TASK_STATE_FAILED']) {
    const [, ran] = buildTurns([...begun, entry(3, { state })])[0]?.steps ?? []
    assert.deepEqual([ran?.look, ran?.note], ['waiting', 'did not end'], state)
  }
})

test('CV-4 a tool does not run while its turn waits for a person', () => {
  const asks = [working(1), tool(2, 'started'), entry(3, { state: 'TASK_STATE_AUTH_REQUIRED', text: 'may it?' })]
  const last = (entries: readonly ActivityView[]) => {
    const step = buildTurns(entries)[0]?.steps.find(({ verb }) => verb === 'Ran')
    return [step?.look, step?.note]
  }
  assert.deepEqual(last(asks), ['waiting', 'waits for you'])
  assert.deepEqual(last([...asks, working(4)]), ['running', undefined])
})

test('CV-4 attempts are counted, an answered question is no attempt, and the last changed turn is first', () => {
  const turns = buildTurns([
    working(1),
    entry(2, { state: 'TASK_STATE_AUTH_REQUIRED', text: 'waiting for permission to use Bash' }),
    working(3),
    entry(4, { state: 'TASK_STATE_WORKING', text: 'the limit is reached (rate_limited, err_01M7)' }),
    working(5),
    entry(6, { task_id: 't2', state: 'TASK_STATE_WORKING' }),
  ])
  assert.deepEqual(
    turns.map(({ taskId }) => taskId),
    ['t2', 't1'],
  )
  assert.deepEqual(
    turns[1]?.steps.map(({ verb, note }) => [verb, note]),
    [
      ['Began', undefined],
      ['Waiting for permission to use Bash', undefined],
      ['Went on after the answer', undefined],
      ['The limit is reached', 'attempt 1'],
      ['Ran again', 'attempt 2'],
    ],
  )
})

test('CV-4 the diffs that the end of a tool reports belong to its step', () => {
  const diffs = [{ path: 'a.txt', diff: '+one' }]
  const end = { ...tool(3, 'finished'), diffs }
  const [turn] = buildTurns([working(1), tool(2, 'started'), end])
  assert.deepEqual(
    turn?.steps.map((step) => step.diffs),
    [undefined, diffs],
  )
})

test('CV-4 the time of a tool is without the time that a person took to answer, and a question is shown as Markdown', () => {
  const after = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
  const entries = [
    { seq: 1, at: after(0), type: 'tool', task_id: 't', name: 'Bash', subject: 'make', state: 'started' },
    { seq: 2, at: after(1), type: 'status', task_id: 't', state: 'TASK_STATE_INPUT_REQUIRED', text: '**25** or 32?' },
    { seq: 3, at: after(61), type: 'status', task_id: 't', state: 'TASK_STATE_WORKING' },
    { seq: 4, at: after(63), type: 'tool', task_id: 't', name: 'Bash', subject: 'make', state: 'finished' },
    { seq: 5, at: after(64), type: 'partial', task_id: 't', text: 'Half of' },
  ]
  const [turn] = buildTurns(entries as never)
  assert.deepEqual(
    turn?.steps.map(({ verb, detail, tookMs }) => [verb, detail, tookMs]),
    [
      ['Ran', undefined, 3000],
      ['Asks you', '**25** or 32?', undefined],
      ['Went on after the answer', undefined, undefined],
      ['Wrote, before it was stopped', 'Half of', undefined],
    ],
  )
})
