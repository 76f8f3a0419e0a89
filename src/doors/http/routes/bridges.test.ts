import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { leaseOf } from '../../../../test/fakes/letters.ts'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { present } from '../../../../test/harness/present.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Bridges } from '../../../inbox/bridges.ts'
import type { Directive } from '../../../inbox/worker.ts'
import { createMetrics } from '../../../metrics.ts'
import type { Brief } from '../../../protocol/brief.ts'
import { writeEnvelope } from '../../../protocol/envelope.ts'

const KEY = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
const CALL = { bridge: 'b', host: 'laptop', leases_max: 2, holding: ['m.1'], wait_ms: 5 }
const BRIEF: Brief = {
  runtime: 'external',
  options: { key: 'secret' },
  systemPrompt: 'Be brief',
  workingDir: '/srv',
  maxAttempts: 4,
  env: { MOLECULE_WORKSPACE_TOKEN: 'mol_1', OTHER: 'secret' },
}

/** A door with one workspace that a bridge runs, and these answers for the bridge. */
async function openInbox(
  t: TestContext,
  { bridges, brief = async () => BRIEF }: { bridges: Partial<Bridges>; brief?: () => Promise<Brief> },
) {
  const { workspaces } = createFakePlatform()
  const { id } = await workspaces.create({ name: 'far', runtime: 'external' })
  const metrics = createMetrics()
  const call = await openRoutes(t, { workspaces, metrics, bridgeContext: { bridges: bridges as Bridges, brief } })
  const post = (name: string, body: object) => call(`POST /workspaces/${id}/inbox/${name}`, { body })
  return { id, post, metrics, call }
}

test('CN-1 a bridge receives its leases with their briefs, without the options and folders of the platform', async (t) => {
  const calls: unknown[] = []
  const stop: Directive = { type: 'stop', key: { ...KEY, workspaceId: 'w' } }
  const bridges: Partial<Bridges> = {
    async lease(given) {
      calls.push(given)
      return [{ type: 'lease', lease: leaseOf({ ...KEY, workspaceId: given.workspaceId }) }, stop]
    },
  }
  const { id, post } = await openInbox(t, { bridges })
  const { status, json } = await post('lease', CALL)
  const { envelope, ...rest } = leaseOf({ ...KEY, workspaceId: id })
  assert.equal(status, 200)
  const [handout, second, ...others] = json.handouts
  assert.deepEqual(handout.brief, {
    systemPrompt: 'Be brief',
    maxAttempts: 4,
    env: { MOLECULE_WORKSPACE_TOKEN: 'mol_1' },
  })
  assert.equal(handout.type, 'lease')
  const { envelope: written, ...sent } = handout.lease
  assert.deepEqual(sent, rest)
  assert.deepEqual(JSON.parse(written).message, JSON.parse(writeEnvelope(envelope)).message)
  assert.deepEqual([second, others], [stop, []])
  assert.deepEqual(calls, [{ workspaceId: id, bridge: 'b', holding: ['m.1'], leasesMax: 2, waitMs: 5 }])
})

test('CN-1 a brief without a token has an empty environment', async (t) => {
  const bridges: Partial<Bridges> = {
    lease: async ({ workspaceId }) => [{ type: 'lease', lease: leaseOf({ ...KEY, workspaceId: workspaceId }) }],
  }
  const { post } = await openInbox(t, { bridges, brief: async () => ({ ...BRIEF, env: { OTHER: 'secret' } }) })
  assert.deepEqual((await post('lease', CALL)).json.handouts[0].brief.env, {})
})

test('CN-3 a lease whose brief fails is settled here: again later, or as a dead letter', async (t) => {
  const settled: unknown[] = []
  const bridges: Partial<Bridges> = {
    lease: async ({ workspaceId }) => [{ type: 'lease', lease: leaseOf({ ...KEY, workspaceId: workspaceId }) }],
    async settle(key, input) {
      settled.push([key.messageId, input])
      return 'settled'
    },
  }
  for (const retryable of [true, false]) {
    const brief = () => Promise.reject(new MoleculeError('bad_config', 'no prompt', { retryable }))
    const { post } = await openInbox(t, { bridges, brief })
    const { status, json } = await post('lease', CALL)
    assert.deepEqual([status, json], [200, { handouts: [] }])
  }
  const dead = { type: 'dead', failure: { code: 'bad_config', message: 'no prompt' } }
  assert.deepEqual(settled, [
    ['m', { outcome: { type: 'released', interrupted: false }, host: 'laptop' }],
    ['m', { outcome: dead, host: 'laptop' }],
  ])
})

test('CN-1 a bridge is refused for a workspace that the platform runs itself', async (t) => {
  const { call } = await openInbox(t, { bridges: { lease: async () => [] } })
  const own = { role: 'workspace', body: CALL } as const
  const { status, json } = await call(`POST /workspaces/${WORKSPACE_ID}/inbox/lease`, own)
  assert.deepEqual([status, json.error.code], [400, 'unsupported_operation'])
  assert.match(json.error.message, /runtime exec/)
})

test('CN-4 every call of a worker acts on its lease, and answers with the standing', async (t) => {
  const bridges = recordPart<Bridges>({
    begin: 'held',
    extend: ['held', 'waiting', 'stop', 'stale'],
    append: 'stop',
    suspend: 'held',
    resume: 'stale',
    ask: 'held',
    settle: 'settled',
  })
  const { id, post, metrics } = await openInbox(t, { bridges: bridges.part })
  const key = { ...KEY, workspaceId: id }
  assert.deepEqual((await post('begin', { key: KEY, text: 'x' })).json, { standing: 'held' })
  assert.deepEqual((await post('extend', { keys: [KEY] })).json, {
    standings: ['held', 'held', 'stop', 'stale'],
    waiting: [false, true, false, false],
  })
  const events = [{ type: 'text', delta: 'x' }]
  const appended = await post('append', { key: KEY, from: 3, events, notes: { n: 'v' } })
  assert.deepEqual(appended.json, { standing: 'stop' })
  assert.deepEqual((await post('suspend', { key: KEY })).json, { standing: 'held' })
  assert.deepEqual((await post('resume', { key: KEY })).json, { standing: 'stale' })
  const parts = [{ text: 'May I?' }]
  assert.deepEqual((await post('ask', { key: KEY, question: { id: 'q', parts } })).json, { standing: 'held' })
  const unsent = { from: 4, events }
  const settle = { key: KEY, host: 'laptop', outcome: { type: 'stopped' } }
  assert.deepEqual((await post('settle', settle)).json, { answer: 'settled' })
  await post('settle', { ...settle, unsent })
  assert.deepEqual(present(bridges.take()), [
    ['begin', key, 'x'],
    ['extend', [key]],
    ['append', key, { from: 3, events, notes: { n: 'v' } }],
    ['suspend', key],
    ['resume', key],
    ['ask', key, { id: 'q', parts, kind: 'question' }],
    ['settle', key, { host: 'laptop', outcome: { type: 'stopped' } }],
    ['settle', key, { host: 'laptop', outcome: { type: 'stopped' }, unsent }],
  ])
  assert.deepEqual(metrics.read().get('molecule_turns_total'), [{ labels: { outcome: 'stopped' }, value: 2 }])
})

test('PL-10 a turn that was settled by another worker is not counted again', async (t) => {
  const { post, metrics } = await openInbox(t, { bridges: recordPart<Bridges>({ settle: 'stale' }).part })
  const body = { key: KEY, host: 'laptop', outcome: { type: 'stopped' } }
  assert.deepEqual((await post('settle', body)).json, { answer: 'stale' })
  assert.equal(metrics.read().get('molecule_turns_total'), undefined)
})
