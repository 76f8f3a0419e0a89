import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { countStates, filterWorkspaces } from './filter.ts'

const all = [
  fakeWorkspace('Ada', { role: 'Backend engineer', runtime: 'codex', running: 1 }),
  fakeWorkspace('Scout', { runtime: 'gemini' }),
  fakeWorkspace('Drill', { status: 'paused' }),
]
const names = (text: string, state?: 'working' | 'paused') =>
  filterWorkspaces(all, { text, state }).map(({ name }) => name)

test('CV-5 the list is filtered by name, role, runtime and state', () => {
  assert.deepEqual(names(''), ['Ada', 'Scout', 'Drill'])
  assert.deepEqual(names('BACKEND'), ['Ada'])
  assert.deepEqual(names(' gemini '), ['Scout'])
  assert.deepEqual(names('', 'paused'), ['Drill'])
  assert.deepEqual(names('scout', 'working'), [])
})

test('CV-5 the filters count the workspaces in each state', () => {
  assert.deepEqual([...countStates(all)].sort(), [
    ['online', 1],
    ['paused', 1],
    ['working', 1],
  ])
})
