import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mayTalk, seesConfig, type WorkspaceNode } from './may-talk.ts'
import { TOKEN_ROLES } from './tokens.ts'

const lead: WorkspaceNode = { id: 'lead' }
const ops: WorkspaceNode = { id: 'ops' }
const ada: WorkspaceNode = { id: 'ada', parentId: 'lead' }
const bob: WorkspaceNode = { id: 'bob', parentId: 'lead' }
const eve: WorkspaceNode = { id: 'eve', parentId: 'ops' }
const junior: WorkspaceNode = { id: 'junior', parentId: 'ada' }

test('PL-8 parent and child, siblings, and workspaces without a parent may talk; no others may', () => {
  const may: readonly [WorkspaceNode, WorkspaceNode][] = [
    [lead, ada],
    [ada, bob],
    [lead, ops],
    [ada, junior],
  ]
  const mayNot: readonly [WorkspaceNode, WorkspaceNode][] = [
    [ada, eve],
    [lead, eve],
    [lead, junior],
    [bob, junior],
    [ops, ada],
  ]
  for (const [one, other] of may) {
    assert.ok(mayTalk(one, other).ok, `${one.id} and ${other.id}`)
    assert.ok(mayTalk(other, one).ok, `${other.id} and ${one.id}`)
  }
  for (const [one, other] of mayNot) {
    assert.ok(!mayTalk(one, other).ok, `${one.id} and ${other.id}`)
    assert.ok(!mayTalk(other, one).ok, `${other.id} and ${one.id}`)
  }
})

test('PL-8 a denial names both workspaces and the reason', () => {
  const decision = mayTalk(ada, eve)
  assert.ok(!decision.ok)
  assert.match(decision.reason, /^the workspace ada may talk to its parent, its children and its siblings, and eve is/)
  const itself = mayTalk(ada, ada)
  assert.ok(!itself.ok)
  assert.match(itself.reason, /cannot talk to itself/)
})

/** Any hierarchy: the parent of each workspace is an earlier one, or none. */
const hierarchy = fc.array(fc.nat(), { minLength: 2, maxLength: 12 }).map((picks) => {
  const all: WorkspaceNode[] = []
  for (const [index, pick] of picks.entries()) {
    const parent = all[pick % (index + 1)]
    all.push({ id: `w${index}`, parentId: parent?.id })
  }
  return all
})

test('PL-8 in any hierarchy the rule is symmetric, never allows itself and reaches at most one level up or down', () => {
  const property = fc.property(hierarchy, (all) => {
    const byId = new Map(all.map((workspace) => [workspace.id, workspace]))
    const depth = (workspace: WorkspaceNode): number => {
      const parent = byId.get(workspace.parentId ?? '')
      return parent === undefined ? 0 : depth(parent) + 1
    }
    for (const one of all) {
      assert.ok(!mayTalk(one, one).ok)
      for (const other of all) {
        const { ok } = mayTalk(one, other)
        assert.equal(ok, mayTalk(other, one).ok)
        if (ok) assert.ok(Math.abs(depth(one) - depth(other)) <= 1)
        if (one !== other && depth(one) === 0 && depth(other) === 0) assert.ok(ok)
      }
    }
  })
  fc.assert(property, { numRuns: 300 })
})

test('RT-7 admins and members see settings, other callers do not', () => {
  const seen = TOKEN_ROLES.filter((role) => seesConfig({ role }))
  assert.deepEqual(seen, ['admin', 'member'])
})
