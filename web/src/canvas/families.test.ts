import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { buildFamilies, descendantsOf, groupByParent } from './families.ts'

const below = (id: string, parent: string) => fakeWorkspace(id, { parent_id: parent })

test('an unknown parent and a circle of parents count as no parent', () => {
  const families = buildFamilies([below('a', 'gone'), below('b', 'c'), below('c', 'b')])
  assert.deepEqual(
    families.map((family) => family.workspace.id),
    ['a', 'b', 'c'],
  )
})

test('CV-5 the list has a group for each family and one for the rest', () => {
  const all = [fakeWorkspace('top'), below('a', 'top'), below('deep', 'a'), fakeWorkspace('alone')]
  assert.deepEqual(
    groupByParent(all).map(({ parent, members }) => [
      parent?.id,
      members.map(({ workspace, depth }) => [workspace.id, depth]),
    ]),
    [
      [
        'top',
        [
          ['a', 1],
          ['deep', 2],
        ],
      ],
      [undefined, [['alone', 0]]],
    ],
  )
  assert.deepEqual(
    descendantsOf('top', new Map(all.map((workspace) => [workspace.id, workspace]))).map(({ id }) => id),
    ['a', 'deep'],
  )
})
