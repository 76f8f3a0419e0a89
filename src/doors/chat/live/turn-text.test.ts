import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurnText } from './turn-text.ts'

const at = '2026-11-19T19:05:20.000Z'
const row = (seq: number, ...entries: readonly object[]) => ({
  seq,
  entries: entries.map((entry) => ({ seq, at, task_id: 'task', ...entry })) as never,
})
const text = (delta: string) => ({ type: 'text', text: delta })

test('GW-15 the text of a turn is that of its last attempt, and only its beginning is kept', () => {
  const turn = createTurnText('task', 10)
  turn.add(row(1, text('half'), { type: 'tool', name: 'Bash', state: 'started' }))
  turn.add(row(2, text('of another'), { type: 'text', text: 'x', task_id: 'other' }))
  assert.deepEqual([turn.text, turn.characters, turn.toolCount], ['halfof ano', 14, 1])
  turn.add(row(3, { type: 'retry' }, text('new')))
  assert.deepEqual([turn.text, turn.characters, turn.toolCount], ['new', 3, 0])
  turn.cut()
  turn.add(row(4, text('below')))
  assert.deepEqual([turn.text, turn.characters], ['below', 5])
})

test('GW-15 rows that were read before are not added twice', () => {
  const turn = createTurnText('task', 100)
  turn.begin({ text: 'one two', tools: [] }, 5)
  for (const seq of [4, 5]) turn.add(row(seq, text('again')))
  turn.add(row(6, text(' three')))
  assert.equal(turn.text, 'one two three')
})

test('GW-15 many tools are counted, and the last ones are kept', () => {
  const turn = createTurnText('task', 100)
  for (let n = 0; n < 50; n++) turn.add(row(n + 1, { type: 'tool', name: `t${n}`, state: 'started' }))
  assert.deepEqual([turn.toolCount, turn.tools.length, turn.tools.at(-1)?.name], [50, 20, 't49'])
})
