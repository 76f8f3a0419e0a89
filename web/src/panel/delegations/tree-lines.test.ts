import assert from 'node:assert/strict'
import { test } from 'node:test'
import { treeLines } from './tree-lines.ts'

test('CV-4 the wires of a tree reach each task and pass those in between', () => {
  const tasks = [0, 1, 2, 2, 1].map((depth) => ({ depth }))
  const drawn = tasks.map((_task, index) => treeLines(tasks, index).map(({ level, shape }) => `${level} ${shape}`))
  assert.deepEqual(drawn, [[], ['1 branch'], ['1 pass', '2 branch'], ['1 pass', '2 end'], ['1 end']])
})
