import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import type { Identity } from '../tokens.ts'
import { createRevocations } from './revocations.ts'

const identityOf = (secretId: string, tokenId = secretId): Identity => ({
  tokenId,
  secretId,
  name: secretId,
  role: 'member',
  principal: 'people',
  sender: { kind: 'person', id: tokenId, name: secretId, door: 'http' },
})

/** Watched secrets; `revoked` are no longer valid. Each poll is kept as the secrets that it asked for. */
function setUp() {
  const clock = manualClock()
  const polls: string[][] = []
  const revoked = new Set<string>()
  const outage = { isDown: false }
  const findValid = async (identities: readonly Identity[]) => {
    const asked = identities.map(({ secretId }) => secretId)
    polls.push(asked)
    if (outage.isDown) throw new Error('the store is away')
    return new Set(asked.filter((each) => !revoked.has(each)))
  }
  const revocations = createRevocations({ clock, findValid })
  const called: string[] = []
  const watch = (secretId: string, name = secretId) =>
    revocations.watch(identityOf(secretId), () => void called.push(name))
  const pass = async (ms: number) => {
    clock.advance(ms)
    await clock.settle()
  }
  return { polls, revoked, outage, revocations, called, watch, pass }
}

test('PL-12 every 5 s one poll asks for all watched secrets, from the first one on', async () => {
  const { polls, called, watch, pass } = setUp()
  watch('a')
  watch('b')
  await pass(4999)
  assert.deepEqual(polls, [])
  await pass(1)
  assert.deepEqual(polls, [['a', 'b']])
  await pass(5000)
  assert.deepEqual(polls, [
    ['a', 'b'],
    ['a', 'b'],
  ])
  assert.deepEqual(called, [])
})

test('PL-12 one poll checks 500 secrets with open streams, and the next poll the others', async () => {
  const { polls, watch, pass } = setUp()
  for (let count = 0; count < 501; count++) watch(`${count}`)
  for (let poll = 0; poll < 3; poll++) await pass(5000)
  assert.deepEqual(
    polls.map((asked) => [asked[0], asked.length]),
    [
      ['0', 500],
      ['500', 1],
      ['0', 500],
    ],
  )
})

test('PL-12 a revoked secret is told once, to all of its callbacks, and the polls end with the last secret', async () => {
  const { polls, revoked, called, watch, pass } = setUp()
  watch('a', 'a1')
  watch('a', 'a2')
  watch('b')
  revoked.add('a')
  await pass(5000)
  assert.deepEqual(called, ['a1', 'a2'])
  await pass(5000)
  assert.deepEqual([polls[1], called], [['b'], ['a1', 'a2']])
  revoked.add('b')
  await pass(5000)
  assert.deepEqual(called, ['a1', 'a2', 'b'])
  await pass(60_000)
  assert.equal(polls.length, 3)
})

test('PL-12 a poll that fails ends no stream, and the next one follows', async () => {
  const { polls, revoked, outage, called, watch, pass } = setUp()
  watch('a')
  revoked.add('a')
  outage.isDown = true
  await pass(5000)
  assert.deepEqual([polls.length, called], [1, []])
  outage.isDown = false
  await pass(5000)
  assert.deepEqual([polls.length, called], [2, ['a']])
})

test('PL-12 a secret is polled as long as one of its callbacks is left', async () => {
  const { polls, revocations, called, watch, pass } = setUp()
  const [stopFirst, stopSecond] = [watch('a', 'first'), watch('a', 'second')]
  const stopOther = watch('b')
  stopFirst()
  await pass(5000)
  assert.deepEqual(polls, [['a', 'b']])
  stopSecond()
  await pass(5000)
  assert.deepEqual(polls[1], ['b'])
  revocations.notifyWatchers(({ secretId }) => secretId === 'a')
  stopOther()
  await pass(60_000)
  assert.deepEqual([polls.length, called], [2, []])
})

test('PL-12 without a watched secret no timer runs, and a new one waits its whole 5 s', async () => {
  const { polls, watch, pass } = setUp()
  const stop = watch('a')
  await pass(3000)
  stop()
  watch('a')
  await pass(4999)
  assert.deepEqual(polls, [])
  await pass(1)
  assert.deepEqual(polls, [['a']])
})

test('PL-12 a caller that stops watching after its notice does not end the watch of a later caller', async () => {
  const { revocations, called, watch } = setUp()
  const stopFirst = watch('a', 'first')
  watch('b')
  revocations.notifyWatchers(({ secretId }) => secretId === 'a')
  watch('a', 'second')
  stopFirst()
  revocations.notifyWatchers(({ secretId }) => secretId === 'a')
  assert.deepEqual(called, ['first', 'second'])
})

test('PL-12 a recheck asks at once, for the affected secrets only, and not at all without one', async () => {
  const { polls, revoked, revocations, called, watch } = setUp()
  watch('a')
  watch('b')
  revoked.add('a').add('b')
  await revocations.recheck(({ secretId }) => secretId === 'unknown')
  assert.deepEqual(polls, [])
  await revocations.recheck(({ secretId }) => secretId === 'b')
  assert.deepEqual([polls, called], [[['b']], ['b']])
})
