/**
 * A storm: many things are begun at the same moment by both nodes, so that transactions of different connections meet.
 * Nobody can say beforehand who will win, so there is no model here: what is checked is that the rows are sound after
 * each wave, that every refusal is one that a caller is meant to get, and that one lease had one winner.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MoleculeError } from '../../../src/errors.ts'
import type { Lease, Letter, Outcome } from '../../../src/inbox/inbox.ts'
import type { Store } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { failure } from '../inbox/harness.ts'
import { at, living, number } from './command.ts'
import { closeGame, type Game, openGame } from './game.ts'
import { checkProgress, checkRows, isRunningRow, readRows } from './rows.ts'
import type { Node } from './world.ts'

const CONTEXTS = ['first', 'second']
const REFUSALS = ['idempotency_conflict', 'not_found', 'unsupported_operation', 'not_cancelable']
const KINDS = [
  ...(['admit', 'admit', 'again', 'continue', 'continue', 'cancel', 'cancel', 'done', 'done', 'done'] as const),
  ...([
    'retry',
    'dead',
    'release',
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

export interface Deed {
  readonly kind: (typeof KINDS)[number]
  readonly node: number
  readonly which: number
}

/** All deeds of a wave are begun at once. */
export const waves: fc.Arbitrary<Deed[][]> = fc.array(
  fc.array(fc.record({ kind: fc.constantFrom(...KINDS), node: number, which: number }), { minLength: 1, maxLength: 8 }),
  { minLength: 1, maxLength: 10, size: 'max' },
)

interface Storm {
  readonly game: Game
  readonly letters: Letter[]
  readonly tasks: { readonly id: string; readonly letter: Letter }[]
  readonly leases: Lease[]
  /** What was said to whoever settled with a reply. */
  readonly settled: { readonly lease: Lease; readonly text: string }[]
  words: number
}

export async function runStorm(stores: readonly Store[], chosen: readonly Deed[][]): Promise<void> {
  const game = await openGame(stores)
  const storm: Storm = { game, letters: [], tasks: [], leases: [], settled: [], words: 0 }
  try {
    for (const wave of chosen) {
      await Promise.all(wave.map((deed) => attempt(storm, deed)))
      await conclude(storm)
    }
    await drain(storm)
  } finally {
    await closeGame(game)
  }
}

async function attempt(storm: Storm, deed: Deed): Promise<void> {
  try {
    await perform(storm, deed, at(living(storm.game), deed.node))
  } catch (error) {
    const meant = error instanceof MoleculeError && REFUSALS.includes(error.code)
    if (!meant) throw error
  }
}

async function perform(storm: Storm, { kind, which }: Deed, node: Node): Promise<void> {
  const { game, tasks, leases, letters } = storm
  if (kind === 'sweep') return await game.world.sweep(node)
  if (kind === 'reboot') return await reboot(game, node)
  if (kind === 'admit') return await admit(storm, node, newLetter(storm, which))
  if (kind === 'again') return letters.length === 0 ? undefined : await admit(storm, node, at(letters, which))
  if (kind === 'continue' || kind === 'cancel') {
    if (tasks.length === 0) return
    const { id, letter } = at(tasks, which)
    if (kind === 'cancel') await node.local.reception.cancel(id)
    else await admit(storm, node, letterTo(letter.workspaceId, { principal: letter.principal, taskId: id }))
    return
  }
  // The newest leases are the ones that still stand.
  if (leases.length > 0) await work(storm, at(leases.slice(-4), which), { kind, node })
}

function newLetter({ game }: Storm, which: number): Letter {
  const { id } = at(game.model.workspaces, which)
  return letterTo(id, { contextId: at(CONTEXTS, which >> 1), principal: which % 3 === 0 ? 'ws:other' : 'people' })
}

async function admit({ letters, tasks }: Storm, node: Node, letter: Letter): Promise<void> {
  letters.push(letter)
  const { taskId } = await node.local.reception.admit(letter)
  tasks.push({ id: taskId, letter })
}

async function reboot({ world }: Game, node: Node): Promise<void> {
  if (living({ world } as Game).length < world.nodes.length) return
  world.crash(node)
  await world.boot(node)
  world.join(node)
}

async function work(storm: Storm, lease: Lease, { kind, node }: { kind: Deed['kind']; node: Node }): Promise<void> {
  const { inbox } = node.local
  if (kind === 'append') await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'x' }] })
  else if (kind === 'extend') await inbox.extend([lease])
  else if (kind === 'suspend') await inbox.suspend(lease)
  else if (kind === 'resume') await inbox.resume(lease)
  else if (kind === 'ask') await inbox.ask(lease, { id: `question ${++storm.words}`, parts: [{ text: 'may I?' }] })
  else if (kind === 'lapse') {
    const silent = 'update conversations set lease_until = now_ms() - 1 where id = $1 and worker is not null'
    await storm.game.world.sql(silent, lease.conversationId)
  } else await settle(storm, lease, { node, outcome: outcomeOf(kind, ++storm.words) })
}

function outcomeOf(kind: Deed['kind'], word: number): Outcome {
  if (kind === 'dead') return { type: 'dead', failure }
  if (kind === 'release') return { type: 'released', interrupted: false }
  if (kind === 'retry') return { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: true }
  return { type: 'done', finality: 'completed', parts: [{ text: `reply ${word}` }], artifacts: [] }
}

async function settle(storm: Storm, lease: Lease, { node, outcome }: { node: Node; outcome: Outcome }): Promise<void> {
  const answer = await node.local.inbox.settle(lease, outcome)
  if (answer === 'settled' && outcome.type === 'done') {
    storm.settled.push({ lease, text: outcome.parts[0]?.text ?? '' })
  }
}

/** Ends a wave. */
async function conclude({ game, leases, settled }: Storm): Promise<void> {
  await game.world.quiet()
  for (const { handout } of game.world.receive()) if (handout.type === 'lease') leases.push(handout.lease)
  const given = leases.map(({ conversationId, epoch }) => `${conversationId} ${epoch}`)
  assert.equal(new Set(given).size, given.length, 'a lease is handed out once')
  const rows = await readRows(game.store)
  checkRows(rows)
  checkProgress(game.rows, rows)
  game.rows = rows
  for (const { id, reply, state } of rows.messages) {
    const said = settled.filter(({ lease }) => lease.messageId === id).map(({ text }) => text)
    if (reply !== null) assert.ok(said.includes(JSON.parse(reply).parts[0].text), 'a reply is of one who was told so')
    if (said.length > 0) assert.ok(['done', 'canceled'].includes(state), `settled as done and is ${state}`)
  }
}

const DRAIN_ROUNDS_MAX = 200

/** Both nodes are well and settle what they are given; whoever is silent loses what it holds. */
async function drain(storm: Storm): Promise<void> {
  const { game, leases } = storm
  const unsettled = () => game.rows.messages.filter(({ settled_at }) => settled_at === null)
  for (let round = 0; unsettled().length > 0; round++) {
    assert.ok(round < DRAIN_ROUNDS_MAX, 'a healthy worker brings every message to its end')
    for (const { id, lease_epoch: epoch } of game.rows.conversations.filter(({ worker }) => worker !== null)) {
      const lease = leases.find(({ conversationId, epoch: given }) => conversationId === id && given === epoch)
      const node = at(living(game), round)
      if (lease !== undefined) await settle(storm, lease, { node, outcome: outcomeOf('done', ++storm.words) })
      else await game.world.sql('update conversations set lease_until = now_ms() - 1 where id = $1', id)
    }
    for (const node of living(game)) await game.world.sweep(node)
    await conclude(storm)
  }
  assert.ok(!game.rows.messages.some(isRunningRow))
}
