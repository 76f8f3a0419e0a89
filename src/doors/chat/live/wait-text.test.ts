import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alsoWaiting, waitText } from './wait-text.ts'

const AT = '2026-11-19T19:05:20.000Z'

test('GW-15 each reason of a wait is one sentence; a message that runs has none', () => {
  const texts = [
    waitText({ state: 'queued', place: 0 }),
    waitText({ state: 'queued', place: 1 }),
    waitText({ state: 'queued', place: 2 }),
    waitText({ state: 'queued', place: 1, workspace_is: 'paused' }),
    waitText({ state: 'queued', workspace_is: 'offline' }),
    waitText({ state: 'rate_limited', code: 'rate_limited', next_try_at: AT }),
    waitText({ state: 'parked', code: 'auth_failed' }),
    waitText({ state: 'parked', code: 'waiting', reason: 'waiting: the 5 turns an hour are used up', next_try_at: AT }),
    waitText({ state: 'parked', code: 'exit', reason: 'the program /home/ada/x failed', next_try_at: AT }),
    waitText({ state: 'running' }),
    waitText({ state: 'answered' }),
  ]
  assert.deepEqual(texts, [
    'Waiting: the agent works on messages of other chats.',
    'Waiting: 1 message is before yours. `/stop` ends what runs and waits here.',
    'Waiting: 2 messages are before yours. `/stop` ends what runs and waits here.',
    'Waiting: the agent is paused. Your message runs when its owner resumes it.',
    'Waiting: the machine of the agent is not connected. Your message runs when it is back.',
    "Waiting: the model provider's rate limit is reached; it goes on at 19:05 UTC.",
    'Waiting: the agent is not logged in to its model provider, and its owner must log it in.',
    'Waiting: the 5 turns an hour are used up; it goes on at 19:05 UTC.',
    'Waiting: the last try failed; it goes on at 19:05 UTC.',
    undefined,
    undefined,
  ])
  assert.equal(alsoWaiting('Waiting: x.', 1), 'Waiting: x. 1 more message waits behind it.')
  assert.equal(alsoWaiting('Waiting: x.', 2), 'Waiting: x. 2 more messages wait behind it.')
})
