import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { createFakeTokens } from '../../../../test/fakes/platform/fake-tokens.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { createWaitingCalls } from './waiting-calls.ts'

const member = { tokenId: 'member', role: 'member' } as Identity
const admin = { tokenId: 'admin', role: 'admin' } as Identity

function setUp() {
  const tokens = createFakeTokens({ workspaceId: 'ws_1', secretOf: (role) => role })
  return { tokens, waitingCalls: createWaitingCalls(tokens), response: new EventEmitter() }
}

/** Waits until its signal ends it. */
const untilEnded = (signal: AbortSignal) =>
  new Promise<string>((resolve) => {
    if (signal.aborted) return resolve('ended')
    signal.addEventListener('abort', () => resolve('ended'))
  })

test('PL-9 a token has 256 event streams, a closed one makes room, and other tokens and admins are not limited', () => {
  const { waitingCalls } = setUp()
  const open = (identity: Identity) => {
    const response = new EventEmitter()
    waitingCalls.countStream(response, identity)
    return response
  }
  const streams = Array.from({ length: 256 }, () => open(member))
  const refusal = {
    code: 'too_many_requests',
    retryable: true,
    message: 'this token has 256 event streams open; close some first',
    details: { retryAfterMs: 10_000 },
  }
  assert.throws(() => open(member), refusal)
  for (let count = 0; count < 258; count++) open(admin)
  open({ ...member, tokenId: 'other' })
  streams[0]?.emit('close')
  open(member)
  assert.throws(() => open(member), refusal)
  streams[1]?.emit('close')
  streams[2]?.emit('close')
  open(member)
  open(member)
  assert.throws(() => open(member), refusal)
})

test('PL-9 one stream that stays open still counts when all others of its token have closed', () => {
  const { waitingCalls } = setUp()
  const open = () => {
    const response = new EventEmitter()
    waitingCalls.countStream(response, member)
    return response
  }
  const [stays, ...others] = Array.from({ length: 256 }, open)
  for (const response of others) response.emit('close')
  const again = Array.from({ length: 255 }, open)
  assert.throws(open, { code: 'too_many_requests' })
  for (const response of [stays, ...again]) response?.emit('close')
})

test('a call returns what its wait returned, and leaves no listener', async () => {
  const { waitingCalls, response, tokens } = setUp()
  const watched: string[] = []
  const calls = createWaitingCalls({
    onRevoked(identity, callback) {
      watched.push('on')
      const stop = tokens.onRevoked(identity, callback)
      return () => {
        watched.push('off')
        stop()
      }
    },
  })
  const result = await calls.run({ response, identity: member }, async (signal) => {
    assert.deepEqual([signal.aborted, response.listenerCount('close')], [false, 1])
    return 'done'
  })
  assert.deepEqual([result, response.listenerCount('close'), watched], ['done', 0, ['on', 'off']])
  const failing = waitingCalls.run({ response, identity: member }, () => Promise.reject(new Error('no')))
  await assert.rejects(failing, /no/)
  assert.equal(response.listenerCount('close'), 0)
})

test('a client that disconnects ends its wait, and no other', async () => {
  const { waitingCalls, response } = setUp()
  const other = new EventEmitter()
  const signals: AbortSignal[] = []
  const wait = (signal: AbortSignal) => {
    signals.push(signal)
    return untilEnded(signal)
  }
  const left = waitingCalls.run({ response, identity: member }, wait)
  const stays = waitingCalls.run({ response: other, identity: member }, wait)
  response.emit('close')
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, false],
  )
  assert.equal(await left, 'ended')
  other.emit('close')
  assert.equal(await stays, 'ended')
})

test('PL-12 a caller whose token is revoked receives only that error', async () => {
  const { waitingCalls, tokens, response } = setUp()
  const signals: AbortSignal[] = []
  const wait = (signal: AbortSignal) => {
    signals.push(signal)
    return untilEnded(signal)
  }
  const revoked = waitingCalls.run({ response, identity: member }, wait)
  const other = waitingCalls.run({ response: new EventEmitter(), identity: admin }, wait)
  await tokens.revoke('member')
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, false],
  )
  await assert.rejects(revoked, {
    code: 'unauthenticated',
    message: 'this token was revoked while its call waited',
  })
  waitingCalls.end()
  assert.equal(await other, 'ended')
})

test('a door that closes ends all waits, and every later one at once', async () => {
  const { waitingCalls } = setUp()
  const signals: AbortSignal[] = []
  const run = () =>
    waitingCalls.run({ response: new EventEmitter(), identity: member }, (signal) => {
      signals.push(signal)
      return untilEnded(signal)
    })
  const waits = [run(), run()]
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, false],
  )
  waitingCalls.end()
  waits.push(run())
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true, true],
  )
  assert.deepEqual(await Promise.all(waits), ['ended', 'ended', 'ended'])
})

test('a wait that is over is not ended again when the door closes', async () => {
  const { waitingCalls, response } = setUp()
  let kept: AbortSignal | undefined
  await waitingCalls.run({ response, identity: member }, async (signal) => {
    kept = signal
  })
  waitingCalls.end()
  assert.equal(kept?.aborted, false)
})
