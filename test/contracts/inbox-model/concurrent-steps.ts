/**
 * Concurrent steps: both nodes start many steps at the same moment, so that transactions of different connections meet.
 * The winner is not known beforehand, so there is no model here. After each wave the rows must be valid, every refusal
 * must be an expected one, and each lease must have one winner.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MoleculeError } from '../../../src/errors.ts'
import type { Letter } from '../../../src/inbox/reception.ts'
import type { Lease, Outcome } from '../../../src/inbox/worker.ts'
import { readReply } from '../../../src/protocol/stored-reply.ts'
import type { Store } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { failure } from '../inbox/harness.ts'
import { aliveNodes, number, pick } from './command.ts'
import { closeModelRun, type ModelRun, openModelRun } from './model-run.ts'
import type { TestNode } from './node-cluster.ts'
import { checkProgress, checkRows, isRunningRow, readRows } from './rows.ts'

const CONTEXTS = ['first', 'second']
const REFUSALS = ['idempotency_conflict', 'not_found', 'unsupported_operation', 'not_cancelable']
const KINDS = [
  ...(['admit', 'admit', 'again', 'continue', 'continue', 'cancel', 'cancel', 'done', 'done', 'done'] as const),
  ...([
    'retry',
    'dead',
    'release',
    'begin',
    'append',
    'extend',
    'suspend',
    'resume',
    'ask',
    'lapse',
    'sweep',
    'reboot',
  ] as const),
]

export interface ConcurrentStep {
  readonly kind: (typeof KINDS)[number]
  readonly node: number
  readonly which: number
}

/** All steps of a wave start at once. */
export const stepWaves: fc.Arbitrary<ConcurrentStep[][]> = fc.array(
  fc.array(fc.record({ kind: fc.constantFrom(...KINDS), node: number, which: number }), { minLength: 1, maxLength: 8 }),
  { minLength: 1, maxLength: 10, size: 'max' },
)

interface ConcurrentRun {
  readonly modelRun: ModelRun
  readonly letters: Letter[]
  readonly tasks: { readonly id: string; readonly letter: Letter }[]
  readonly leases: Lease[]
  /** The replies whose settle was accepted. */
  readonly settled: { readonly lease: Lease; readonly text: string }[]
  counter: number
}

export async function runConcurrentSteps(stores: readonly Store[], chosen: readonly ConcurrentStep[][]): Promise<void> {
  const modelRun = await openModelRun(stores)
  const run: ConcurrentRun = { modelRun, letters: [], tasks: [], leases: [], settled: [], counter: 0 }
  try {
    for (const wave of chosen) {
      await Promise.all(wave.map((step) => attempt(run, step)))
      await conclude(run)
    }
    await drain(run)
  } finally {
    await closeModelRun(modelRun)
  }
}

async function attempt(run: ConcurrentRun, step: ConcurrentStep): Promise<void> {
  try {
    await perform(run, step, pick(aliveNodes(run.modelRun), step.node))
  } catch (error) {
    const expected = error instanceof MoleculeError && REFUSALS.includes(error.code)
    if (!expected) throw error
  }
}

async function perform(run: ConcurrentRun, { kind, which }: ConcurrentStep, node: TestNode): Promise<void> {
  const { modelRun, tasks, leases, letters } = run
  if (kind === 'sweep') return await modelRun.cluster.sweep(node)
  if (kind === 'reboot') return await reboot(modelRun, node)
  if (kind === 'admit') return await admit(run, node, newLetter(run, which))
  if (kind === 'again') return letters.length === 0 ? undefined : await admit(run, node, pick(letters, which))
  if (kind === 'continue' || kind === 'cancel') {
    if (tasks.length === 0) return
    const { id, letter } = pick(tasks, which)
    if (kind === 'cancel') await node.local.reception.cancel(id)
    else await admit(run, node, letterTo(letter.workspaceId, { principal: letter.principal, taskId: id }))
    return
  }
  // Mostly only the newest leases are current.
  if (leases.length > 0) await work(run, pick(leases.slice(-4), which), { kind, node })
}

function newLetter({ modelRun }: ConcurrentRun, which: number): Letter {
  const { id } = pick(modelRun.model.workspaces, which)
  return letterTo(id, { contextId: pick(CONTEXTS, which >> 1), principal: which % 3 === 0 ? 'ws:other' : 'people' })
}

async function admit({ letters, tasks }: ConcurrentRun, node: TestNode, letter: Letter): Promise<void> {
  letters.push(letter)
  const { taskId } = await node.local.reception.admit(letter)
  tasks.push({ id: taskId, letter })
}

async function reboot({ cluster }: ModelRun, node: TestNode): Promise<void> {
  if (aliveNodes({ cluster } as ModelRun).length < cluster.nodes.length) return
  cluster.crash(node)
  await cluster.boot(node)
  cluster.join(node)
}

async function work(
  run: ConcurrentRun,
  lease: Lease,
  { kind, node }: { kind: ConcurrentStep['kind']; node: TestNode },
): Promise<void> {
  const { inbox } = node.local
  if (kind === 'begin') await inbox.begin(lease, 'started')
  else if (kind === 'append') await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'x' }] })
  else if (kind === 'extend') await inbox.extend([lease])
  else if (kind === 'suspend') await inbox.suspend(lease)
  else if (kind === 'resume') await inbox.resume(lease)
  else if (kind === 'ask')
    await inbox.ask(lease, { kind: 'question', id: `question ${++run.counter}`, parts: [{ text: 'may I?' }] })
  else if (kind === 'lapse') {
    const silent = 'update conversations set lease_until = now_ms() - 1 where id = $1 and worker is not null'
    await run.modelRun.cluster.sql(silent, lease.conversationId)
  } else await settle(run, lease, { node, outcome: outcomeOf(kind, ++run.counter) })
}

function outcomeOf(kind: ConcurrentStep['kind'], count: number): Outcome {
  if (kind === 'dead') return { type: 'dead', failure }
  if (kind === 'release') return { type: 'released', interrupted: false }
  if (kind === 'retry') return { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: true }
  return { type: 'done', finality: 'completed', parts: [{ text: `reply ${count}` }], artifacts: [] }
}

async function settle(
  run: ConcurrentRun,
  lease: Lease,
  { node, outcome }: { node: TestNode; outcome: Outcome },
): Promise<void> {
  const answer = await node.local.inbox.settle(lease, outcome)
  if (answer === 'settled' && outcome.type === 'done') {
    run.settled.push({ lease, text: outcome.parts[0]?.text ?? '' })
  }
}

/** Ends a wave. */
async function conclude({ modelRun, leases, settled }: ConcurrentRun): Promise<void> {
  await modelRun.cluster.quiet()
  for (const { directive } of modelRun.cluster.receive()) if (directive.type === 'lease') leases.push(directive.lease)
  const given = leases.map(({ conversationId, epoch }) => `${conversationId} ${epoch}`)
  assert.equal(new Set(given).size, given.length, 'a worker receives each lease once')
  const rows = await readRows(modelRun.store)
  checkRows(rows)
  checkProgress(modelRun.rows, rows)
  modelRun.rows = rows
  for (const { id, reply, state } of rows.messages) {
    const said = settled.filter(({ lease }) => lease.messageId === id).map(({ text }) => text)
    if (reply !== null && state === 'done')
      assert.ok(
        said.includes(readReply(reply, id).parts[0]?.text ?? ''),
        'a stored reply is one whose settle was accepted',
      )
    if (said.length > 0) assert.ok(['done', 'canceled'].includes(state), `settled as done and is ${state}`)
  }
}

const DRAIN_ROUNDS_MAX = 200

/** Both nodes are healthy and settle every lease; a lease that no node knows runs out. */
async function drain(run: ConcurrentRun): Promise<void> {
  const { modelRun, leases } = run
  const unsettled = () => modelRun.rows.messages.filter(({ settled_at }) => settled_at === null)
  for (let round = 0; unsettled().length > 0; round++) {
    assert.ok(round < DRAIN_ROUNDS_MAX, 'a healthy worker brings every message to its end')
    for (const { id, lease_epoch: epoch } of modelRun.rows.conversations.filter(({ worker }) => worker !== null)) {
      const lease = leases.find(({ conversationId, epoch: given }) => conversationId === id && given === epoch)
      const node = pick(aliveNodes(modelRun), round)
      if (lease !== undefined) await settle(run, lease, { node, outcome: outcomeOf('done', ++run.counter) })
      else await modelRun.cluster.sql('update conversations set lease_until = now_ms() - 1 where id = $1', id)
    }
    for (const node of aliveNodes(modelRun)) await modelRun.cluster.sweep(node)
    await conclude(run)
  }
  assert.ok(!modelRun.rows.messages.some(isRunningRow))
}
