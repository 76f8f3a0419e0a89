import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { withWaits } from './shown-workspace.ts'

test('a workspace that waits for others has their names, and stays the same object while nothing changes', () => {
  const all = new Map(['Conductor', 'Ada', 'Scout'].map((id) => [id, fakeWorkspace(id)]))
  const open = [
    { from: 'Conductor', to: 'Ada', count: 1 },
    { from: 'Conductor', to: 'Scout', count: 2 },
    { from: 'Ada', to: 'gone', count: 1 },
  ]
  const shown = withWaits(all, open)
  assert.deepEqual(shown.get('Conductor')?.waitsFor, ['Ada', 'Scout'])
  assert.equal(shown.get('Ada'), all.get('Ada'))
  assert.equal(withWaits(all, [...open]).get('Conductor'), shown.get('Conductor'))
  assert.equal(withWaits(all, []), all)
})
