/** Tokens of the platform are masked in what a turn reports; a session is opaque and stays as it is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome } from '../worker.ts'
import { maskEvents, maskSettle } from './mask-turn.ts'

const TOKEN = `mol_${'x'.repeat(43)}`

test('a token in the events of a turn is masked; the numbers and notes of the events stay', () => {
  const events = [{ type: 'text', delta: `my token is ${TOKEN}` } as const]
  const masked = [{ type: 'text', delta: 'my token is [hidden]' }]
  const notes = { session: TOKEN }
  assert.deepEqual(maskEvents({ from: 3, events, notes }), { from: 3, events: masked, notes })
})

test('RT-5 a token in a reply is masked, and the session of the turn is kept as it is', () => {
  const outcome: Outcome = {
    type: 'done',
    finality: 'completed',
    parts: [{ text: TOKEN }],
    artifacts: [],
    session: TOKEN,
  }
  const unsent = { from: 1, events: [{ type: 'text', delta: TOKEN } as const] }
  assert.deepEqual(maskSettle({ outcome, unsent }), {
    outcome: { ...outcome, parts: [{ text: '[hidden]' }] },
    unsent: { from: 1, events: [{ type: 'text', delta: '[hidden]' }] },
  })
})
