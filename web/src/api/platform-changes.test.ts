import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyPlatformMessages } from './platform-changes.ts'

const workspace = (id: string, name = id) => ({ id, name, role: '', runtime: 'mock', status: 'online' })
const snapshot = (...workspaces: object[]) => ({ type: 'snapshot', workspaces })

test('CV-1 changes of the platform stream are applied in order, and unchanged workspaces stay the same objects', () => {
  const first = applyPlatformMessages(undefined, [snapshot(workspace('a'), workspace('b'))])
  assert.deepEqual([...(first?.keys() ?? [])], ['a', 'b'])
  const next = applyPlatformMessages(first, [
    { type: 'changed', id: 'a', state: workspace('a', 'Ada') },
    { type: 'created', id: 'c', state: workspace('c') },
    { type: 'deleted', id: 'b' },
  ])
  assert.deepEqual(
    [...(next?.values() ?? [])].map(({ name }) => name),
    ['Ada', 'c'],
  )
  const again = applyPlatformMessages(next, [snapshot(workspace('a', 'Ada'), workspace('c'))])
  assert.equal(again?.get('a'), next?.get('a'))
})

test('a change before the first snapshot is ignored, because the snapshot contains it', () => {
  assert.equal(applyPlatformMessages(undefined, [{ type: 'deleted', id: 'a' }]), undefined)
})
