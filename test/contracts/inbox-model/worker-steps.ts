/** Steps of workers, with leases that they hold, or held once and lost without knowing. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { NumberedEvents, Outcome } from '../../../src/inbox/worker.ts'
import { failure } from '../inbox/harness.ts'
import { aliveNodes, command, number, pick, rarely } from './command.ts'
import type { HeldLease, InboxModel } from './model.ts'
import * as model from './model.ts'
import { conclude, type ModelRun } from './model-run.ts'
import type { TestNode } from './node-cluster.ts'

const HOUR_MS = 3600_000

interface WhichLease {
  readonly lease: number
  /** Any lease that ever was, not only a current one. */
  readonly old: boolean
  /** The call goes to another node than the worker's own. */
  readonly elsewhere: boolean
  readonly node: number
}

const which = { lease: number, old: rarely, elsewhere: rarely, node: number }
const hasLease = (known: InboxModel, { old }: WhichLease) => (old ? known.leases : model.current(known)).length > 0

interface Chosen {
  readonly held: HeldLease
  readonly node: TestNode
}

function choose(modelRun: ModelRun, { lease, old, elsewhere, node }: WhichLease): Chosen {
  const held = pick(old ? modelRun.model.leases : model.current(modelRun.model), lease)
  const own = modelRun.cluster.nodes.find(({ name, alive }) => alive && held.worker.startsWith(`${name}.`))
  return { held, node: own === undefined || elsewhere ? pick(aliveNodes(modelRun), node) : own }
}

const describeStep = ({ held, node }: Chosen, answer: string) =>
  `${held.lease.idempotencyKey} of ${held.worker}, epoch ${held.lease.epoch}, by ${node.name}: ${answer}`

const done = (finality: (Outcome & { type: 'done' })['finality']): Outcome => ({
  type: 'done',
  finality,
  parts: [],
  artifacts: [],
})

const outcomes = fc.oneof(
  fc.constantFrom('completed' as const, 'completed' as const, 'input_required' as const, 'rejected' as const).map(done),
  fc.record({
    type: fc.constant('retry' as const),
    failure: fc.constant(failure),
    afterMs: fc.constantFrom(0, 0, HOUR_MS),
    reason: fc.constant('failure' as const),
    interrupted: fc.boolean(),
  }),
  fc.constant<Outcome>({ type: 'dead', failure }),
  fc.record({ type: fc.constant('released' as const), interrupted: fc.boolean() }),
  fc.constant<Outcome>({ type: 'stopped' }),
)

let replies = 0

/** Every reply has its own text, so that a stored reply shows which settle it came from. */
const withReplyText = (outcome: Outcome): Outcome =>
  outcome.type === 'done' ? { ...outcome, parts: [{ text: `reply ${++replies}` }] } : outcome

const eventsFrom = (from: number, count: number): NumberedEvents => ({
  from,
  events: Array.from({ length: count }, () => ({ type: 'text', delta: 'x' })),
})

export const settle = command({
  name: 'settle',
  choice: fc.record({ ...which, outcome: outcomes, unsent: fc.nat(2) }),
  possible: hasLease,
  async run(modelRun, choice) {
    const chosen = choose(modelRun, choice)
    const { held, node } = chosen
    const outcome = withReplyText(choice.outcome)
    const unsent = eventsFrom(held.message.appended + 1, choice.unsent)
    const expected = model.settle(held, outcome, unsent)
    assert.equal(await node.local.inbox.settle(held.lease, outcome, unsent), expected)
    return `${outcome.type} ${describeStep(chosen, expected)}`
  },
})

/** The answer to a settle was lost, and the worker settles again, with the same outcome or another. */
export const settleTwice = command({
  name: 'settle twice',
  choice: fc.record({ ...which, first: outcomes, second: outcomes, same: fc.boolean() }),
  possible: hasLease,
  async run(modelRun, choice) {
    const chosen = choose(modelRun, choice)
    const { held, node } = chosen
    const story: string[] = []
    for (const given of [choice.first, choice.same ? choice.first : choice.second]) {
      const outcome = withReplyText(given)
      const expected = model.settle(held, outcome, eventsFrom(1, 0))
      assert.equal(await node.local.inbox.settle(held.lease, outcome), expected)
      story.push(`${outcome.type} ${expected}`)
      await conclude(modelRun)
    }
    return describeStep(chosen, story.join(', '))
  },
})

export const append = command({
  name: 'append',
  choice: fc.record({ ...which, again: fc.boolean(), count: fc.integer({ min: 1, max: 3 }) }),
  possible: hasLease,
  async run(modelRun, choice) {
    const chosen = choose(modelRun, choice)
    const { held, node } = chosen
    const { appended } = held.message
    // Again: repeats every event so far, and perhaps adds more.
    const events = choice.again ? eventsFrom(1, appended + choice.count - 1) : eventsFrom(appended + 1, choice.count)
    const expected = model.append(held, events)
    assert.equal(await node.local.inbox.append(held.lease, events), expected)
    return describeStep(chosen, expected)
  },
})

/** A call that names only a lease. */
const callOfLease = (
  name: 'begin' | 'extend' | 'suspend' | 'resume',
  inModel: (held: HeldLease) => string,
  inInbox: (inbox: TestNode['local']['inbox'], lease: HeldLease['lease']) => Promise<string | undefined>,
) =>
  command({
    name,
    choice: fc.record(which),
    possible: hasLease,
    async run(modelRun, choice) {
      const chosen = choose(modelRun, choice)
      const expected = inModel(chosen.held)
      assert.equal(await inInbox(chosen.node.local.inbox, chosen.held.lease), expected)
      return describeStep(chosen, expected)
    },
  })

export const begin = callOfLease('begin', model.begin, (inbox, lease) => inbox.begin(lease))
export const extend = callOfLease('extend', model.extend, async (inbox, lease) => (await inbox.extend([lease]))[0])
export const suspend = callOfLease('suspend', model.suspend, (inbox, lease) => inbox.suspend(lease))
export const resume = callOfLease('resume', model.resumeHeld, (inbox, lease) => inbox.resume(lease))

let questions = 0

/** A turn has one open ask at a time; the same ask twice is one. */
export const ask = command({
  name: 'ask',
  choice: fc.record({ ...which, twice: fc.boolean() }),
  possible: hasLease,
  async run(modelRun, choice) {
    const chosen = choose(modelRun, choice)
    const { held, node } = chosen
    const question = { kind: 'question', id: `question ${++questions}`, parts: [{ text: 'may I?' }] } as const
    const expected = model.ask(held, question.id)
    assert.equal(await node.local.inbox.ask(held.lease, question), expected)
    if (choice.twice && expected === 'held') assert.equal(await node.local.inbox.ask(held.lease, question), 'held')
    return describeStep(chosen, expected)
  },
})
