/** The limits of a tree, as they are computed from its rows, and how a refusal shows the tree. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeTree, refuseDelegation, roomInTree, type TreeRow, turnsBelow, turnsMaxOf } from './tree.ts'

const row = (id: string, parentId: string | null, values: Partial<TreeRow> = {}): TreeRow => ({
  id,
  parent_id: parentId,
  task_id: `t-${id}`,
  workspace_id: `ws_${id}`,
  workspace_name: `name-${id}`,
  principal: 'people',
  task_state: 'TASK_STATE_WORKING',
  open: 1,
  turns: 1,
  delegation: null,
  ...values,
})
const limited = (turnsLeft: number) => ({ delegation: JSON.stringify({ turns_left: turnsLeft }) })
const at = (parentId: string, values = {}) => ({ parentId, turnsMax: 50, limits: {}, continues: false, ...values })

test('TW-9 a tree may cause 50 turns, or fewer where its first message says so', () => {
  assert.equal(turnsMaxOf({}), 50)
  assert.equal(turnsMaxOf({ turns_left: 51 }), 50)
  assert.equal(turnsMaxOf({ turns_left: 7 }), 7)
  assert.equal(turnsMaxOf({ turns_left: 0 }), 0)
  const tree = (turns: number) => [row('1', null, { turns }), row('2', '1', { open: 0 })]
  assert.deepEqual(roomInTree(tree(48), at('1')), { turnsLeft: 0, refusal: undefined })
  assert.deepEqual(roomInTree(tree(47), at('1')), { turnsLeft: 1, refusal: undefined })
  const full = { turnsLeft: -1, refusal: 'one message may cause 50 turns, and this one has caused 50' }
  assert.deepEqual(roomInTree(tree(49), at('1')), full)
  assert.deepEqual(roomInTree(tree(50), at('1')), {
    turnsLeft: -2,
    refusal: 'one message may cause 50 turns, and this one has caused 51',
  })
})

test('TW-9 the turns that came with a message are used up by everything below it, and by nothing beside it', () => {
  const tree = [
    row('1', null),
    row('2', '1', limited(3)),
    row('3', '2', { ...limited(9), turns: 2 }),
    row('4', '1', { turns: 20 }),
    row('5', '3'),
    row('6', null, { turns: 5 }),
  ]
  assert.equal(turnsBelow(tree, '1'), 24)
  assert.equal(turnsBelow(tree, '2'), 3)
  assert.equal(turnsBelow(tree, '3'), 1)
  assert.equal(turnsBelow(tree, '5'), 0)
  const used = { turnsLeft: -1, refusal: 'the turns that came with this task are used up' }
  assert.deepEqual(roomInTree(tree, at('2')), used)
  assert.deepEqual(roomInTree(tree, at('5')), used, 'the limit of a message above counts too')
  assert.deepEqual(roomInTree(tree, at('4')), { turnsLeft: 19, refusal: undefined })
  const wider = tree.map((each) => (each.id === '2' ? { ...each, ...limited(4) } : each))
  assert.deepEqual(roomInTree(wider, at('5')), { turnsLeft: 0, refusal: undefined })
})

test('TW-9 ten delegations may be open; one that continues a task opens none, and none goes below depth 0', () => {
  const children = (open: number) => Array.from({ length: open }, (_, count) => row(`c${count}`, '1'))
  const ended = [row('1', null), row('2', '1', { open: 0 }), row('3', null)]
  assert.deepEqual(roomInTree([...ended, ...children(9)], at('1')), { turnsLeft: 37, refusal: undefined })
  const full = [...ended, ...children(10)]
  assert.deepEqual(roomInTree(full, at('1')), {
    turnsLeft: 36,
    refusal: '10 delegations are open, and one message may have 10',
  })
  assert.deepEqual(roomInTree(full, at('1', { continues: true })), { turnsLeft: 36, refusal: undefined })
  const deep = (left: number) => roomInTree(ended, at('1', { limits: { depth_left: left } })).refusal
  assert.deepEqual([deep(0), deep(1)], ['this task may not be delegated further', undefined])
})

test('TW-9 a refusal shows the tree: each task below its parent, with its workspace and its state', () => {
  const tree = [
    row('1', null),
    row('2', '1', { task_state: 'TASK_STATE_INPUT_REQUIRED' }),
    row('3', '1', { workspace_name: null, task_state: 'TASK_STATE_COMPLETED' }),
    row('4', '2'),
    row('5', 'gone'),
  ]
  const error = refuseDelegation('no room', tree)
  assert.equal(error.code, 'forbidden')
  assert.deepEqual(error.message.split('\n'), [
    'the delegation is refused: no room',
    'name-1 (ws_1) working, task t-1',
    '  name-2 (ws_2) input required, task t-2',
    '    name-4 (ws_4) working, task t-4',
    '  deleted (ws_3) completed, task t-3',
    'name-5 (ws_5) working, task t-5',
  ])
  assert.deepEqual(
    placeTree(tree).map(({ row: { id }, depth, parentTaskId }) => [id, depth, parentTaskId]),
    [
      ['1', 0, undefined],
      ['2', 1, 't-1'],
      ['4', 2, 't-2'],
      ['3', 1, 't-1'],
      ['5', 0, undefined],
    ],
  )
})
