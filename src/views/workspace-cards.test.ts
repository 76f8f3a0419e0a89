import assert from 'node:assert/strict'
import test from 'node:test'
import { type CardedWorkspace, type CardFacts, workspaceCard } from './workspace-cards.ts'

const QUIET: CardFacts = {
  answered_at: null,
  dead: 0,
  questions: 0,
  deliveries: 0,
  damaged: 0,
  budgets: 0,
  turns: 3,
  unknown: 1,
  cost: 0.5,
}
const WORKSPACE: CardedWorkspace = { id: 'ws_1', status: 'online', queueDepth: 0 }

/** What the card of the workspace says about the need for a person. */
const needsYou = (facts: Partial<CardFacts>, more: Partial<CardedWorkspace> = {}) =>
  workspaceCard({ ...WORKSPACE, ...more }, { ...QUIET, ...facts }).needs_you

test('CV-1 a card says how many things wait for a person, and names the most urgent one', () => {
  assert.equal(needsYou({}), null)
  const urgent: [facts: Partial<CardFacts>, more: Partial<CardedWorkspace>, one: string, two: string][] = [
    [{}, { permissionsAsked: 1 }, 'a turn waits for your permission', '2 turns wait for your permission'],
    [{ questions: 1 }, {}, 'a message asks you a question', '2 messages ask you a question'],
    [{ budgets: 1 }, {}, 'a budget is spent', '2 budgets are spent'],
    [{ dead: 1 }, {}, 'a message failed for good', '2 messages failed for good'],
    [{ deliveries: 1 }, {}, 'an answer may not have arrived', '2 answers may not have arrived'],
    [{ damaged: 1 }, {}, 'a stored reply is damaged', '2 stored replies are damaged'],
  ]
  const twice = (ones: object) => Object.fromEntries(Object.keys(ones).map((name) => [name, 2]))
  for (const [facts, more, one, two] of urgent) {
    assert.deepEqual(needsYou(facts, more), { count: 1, reason: one })
    assert.deepEqual(needsYou(twice(facts), twice(more)), { count: 2, reason: two })
  }
  const failed = { status: 'failed', statusReason: 'no program' } as const
  assert.deepEqual(needsYou({}, failed), { count: 1, reason: 'no program' })
  const counts = { questions: 1, budgets: 1, dead: 1, deliveries: 1 }
  const reasons = [
    needsYou(counts, { ...failed, permissionsAsked: 1 }),
    needsYou(counts, failed),
    needsYou({ ...counts, questions: 0 }, failed),
    needsYou({ dead: 1, deliveries: 1 }, failed),
    needsYou({ dead: 1, deliveries: 1 }),
  ]
  assert.deepEqual(reasons, [
    { count: 6, reason: 'a turn waits for your permission' },
    { count: 5, reason: 'a message asks you a question' },
    { count: 4, reason: 'a budget is spent' },
    { count: 3, reason: 'no program' },
    { count: 2, reason: 'a message failed for good' },
  ])
})
