import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../errors.ts'
import type { Identity, TokenRole } from '../../../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'
import {
  createReach,
  findWorkspaceId,
  listReachable,
  reachable,
  requireOwnWorkspace,
  requireWorkspace,
} from './reach.ts'

const idOf = (number: number) => `ws_0000000000000000000000000${number}`
const make = (number: number, fields: object = {}) =>
  ({ id: idOf(number), name: `agent-${number}`, queueDepth: 0, running: 0, ...fields }) as Workspace & WorkspaceLoad

/** 2 and 3 are children of 1; 4 is a child of 2, so 3 may not talk to it. */
const ALL = [make(1), make(2, { parentId: idOf(1) }), make(3, { parentId: idOf(1) }), make(4, { parentId: idOf(2) })]

function workspacesOf(all: readonly (Workspace & WorkspaceLoad)[] = ALL) {
  const queries: unknown[] = []
  const workspaces = {
    get: async (id: string) => all.find((workspace) => workspace.id === id),
    all: async () => all,
    idsNamed: async (name: string) => all.flatMap((each) => (each.name === name ? [each.id] : [])),
    async list(query: unknown) {
      queries.push(query)
      return { workspaces: all }
    },
  } as unknown as Workspaces
  return { workspaces, queries }
}

const identityOf = (role: TokenRole, fields: Partial<Identity> = {}) =>
  ({ tokenId: role, role, name: `the ${role}`, ...fields }) as Identity
const people = (['admin', 'member', 'viewer'] as const).map((role) => identityOf(role))
const agents = (['workspace', 'conversation'] as const).map((role) => identityOf(role, { workspaceId: idOf(3) }))
const program = identityOf('caller', { workspaces: [idOf(2), idOf(4)] })

test('PL-12 people reach every workspace, a program those on its list, an agent those it may talk to', async () => {
  const reach = createReach(workspacesOf().workspaces)
  const reached = async (identity: Identity, action: 'task.read' | 'message.send') => {
    const found: number[] = []
    for (const number of [1, 2, 3, 4])
      await reach(identity, idOf(number), action).then(
        () => found.push(number),
        (error: MoleculeError) => assert.equal(error.code, 'forbidden'),
      )
    return found
  }
  for (const person of people) assert.deepEqual(await reached(person, 'message.send'), [1, 2, 3, 4])
  assert.deepEqual(await reached(program, 'message.send'), [2, 4])
  for (const agent of agents) {
    assert.deepEqual(await reached(agent, 'task.read'), [1, 2, 3])
    assert.deepEqual(await reached(agent, 'message.send'), [1, 2], 'an agent sends nothing to itself')
  }
})

test('PL-12 a refusal names the token and the reason', async () => {
  const reach = createReach(workspacesOf().workspaces)
  await assert.rejects(reach(program, idOf(1), 'task.read'), {
    code: 'forbidden',
    message: `the token "the caller" does not reach this workspace: it may use only ${idOf(2)}, ${idOf(4)}`,
    details: { role: 'caller' },
  })
  const gone = identityOf('workspace', { workspaceId: idOf(9) })
  await assert.rejects(reach(gone, idOf(1), 'task.read'), {
    code: 'forbidden',
    message: `the workspace ${idOf(9)} of this token is gone`,
  })
  await assert.rejects(reach(identityOf('workspace'), idOf(1), 'task.read'), {
    message: 'the workspace  of this token is gone',
  })
  const [agent] = agents
  assert.ok(agent)
  await assert.rejects(reach(agent, idOf(8), 'task.read'), {
    code: 'not_found',
    message: `there is no workspace ${idOf(8)}`,
    details: { workspace: idOf(8) },
  })
  await assert.rejects(reach(identityOf('caller'), idOf(1), 'task.read'), { code: 'forbidden' })
})

test('a workspace that does not exist is not found by its id', async () => {
  const { workspaces } = workspacesOf()
  assert.equal((await requireWorkspace(workspaces, idOf(2))).name, 'agent-2')
  await assert.rejects(requireWorkspace(workspaces, idOf(7)), { code: 'not_found' })
})

test('PL-12 a name leads to the one workspace that the token reaches, and an id needs no lookup', async () => {
  const same = [...ALL, make(5, { name: 'agent-2', parentId: idOf(4) }), make(6, { name: 'agent-4' })]
  const { workspaces } = workspacesOf(same)
  const reach = createReach(workspaces)
  const find = (identity: Identity, name: string) => findWorkspaceId(identity, name, { workspaces, reach })
  const [admin] = people
  const [agent] = agents
  assert.ok(admin && agent)
  assert.equal(await find(admin, 'agent-1'), idOf(1))
  assert.equal(await find(admin, idOf(9)), idOf(9))
  assert.equal(await find(agent, 'agent-2'), idOf(2), 'the namesake is out of its reach')
  await assert.rejects(find(agent, 'agent-4'), { code: 'not_found', message: 'there is no workspace agent-4' })
  await assert.rejects(find(admin, 'nobody'), { code: 'not_found', details: { workspace: 'nobody' } })
  await assert.rejects(find(admin, 'agent-2'), {
    code: 'invalid_request',
    message: `2 workspaces are called "agent-2"; use an id: ${idOf(2)}, ${idOf(5)}`,
    details: { candidates: [idOf(2), idOf(5)] },
  })
})

test('the count of namesakes is exact below the number that is looked up', async () => {
  const [admin] = people
  assert.ok(admin)
  const named = (count: number) => {
    const ids = Array.from({ length: count }, (_, index) => idOf(index % 10))
    const workspaces = { idsNamed: async () => ids } as unknown as Workspaces
    return findWorkspaceId(admin, 'x', { workspaces, reach: async () => undefined })
  }
  await assert.rejects(named(19), /^MoleculeError: 19 workspaces are called "x"/)
  await assert.rejects(named(20), /^MoleculeError: at least 20 workspaces are called "x"/)
})

test('PL-12 a check that fails is an error, never a yes', async () => {
  const [admin] = people
  assert.ok(admin)
  const reach = async () => {
    throw new MoleculeError('store_unavailable', 'the store is gone')
  }
  const found = findWorkspaceId(admin, 'agent-1', { ...workspacesOf(), reach })
  await assert.rejects(found, { code: 'store_unavailable' })
})

test('PL-8 a list has the workspaces that the token may see', () => {
  const seen = (identity: Identity) => reachable(identity, ALL).map(({ id }) => Number(id.slice(-1)))
  for (const person of people) assert.deepEqual(seen(person), [1, 2, 3, 4])
  assert.deepEqual(seen(program), [2, 4])
  assert.deepEqual(seen(identityOf('caller')), [])
  for (const agent of agents) assert.deepEqual(seen(agent), [1, 2, 3])
  assert.deepEqual(seen(identityOf('workspace', { workspaceId: idOf(9) })), [])
})

test('PL-8 the list of people comes from the store; the list of an agent is cut into pages', async () => {
  const { workspaces, queries } = workspacesOf()
  for (const person of people) await listReachable(person, { limit: 2, after: idOf(1) }, workspaces)
  assert.deepEqual(
    queries,
    people.map(() => ({ limit: 2, after: idOf(1) })),
  )
  const [agent] = agents
  assert.ok(agent)
  const page = async (limit: number, after?: string) => {
    const { workspaces: shown, next } = await listReachable(agent, { limit, ...(after && { after }) }, workspaces)
    return [shown.map(({ id }) => id), next]
  }
  assert.deepEqual(await page(2), [[idOf(1), idOf(2)], idOf(2)])
  assert.deepEqual(await page(2, idOf(2)), [[idOf(3)], undefined])
  assert.deepEqual(await page(3), [[idOf(1), idOf(2), idOf(3)], undefined])
  assert.equal(queries.length, 3)
})

test('PL-12 data of a workspace itself is for people and for its own agent', () => {
  for (const identity of [...people, program]) requireOwnWorkspace(identity, idOf(1))
  for (const agent of agents) {
    requireOwnWorkspace(agent, idOf(3))
    assert.throws(() => requireOwnWorkspace(agent, idOf(1)), {
      code: 'forbidden',
      message: `the token "${agent.name}" speaks for ${idOf(3)}, not for ${idOf(1)}`,
      details: { role: agent.role },
    })
  }
})
