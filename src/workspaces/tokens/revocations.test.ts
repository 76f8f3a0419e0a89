import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import type { Identity } from '../tokens.ts'
import { createRevocations } from './revocations.ts'
import { createVerificationCache } from './verification-cache.ts'

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

test('PL-12 a poll of exactly 500 secrets is followed by the same 500', async () => {
  const { polls, watch, pass } = setUp()
  for (let count = 0; count < 500; count++) watch(`${count}`)
  for (let poll = 0; poll < 3; poll++) await pass(5000)
  assert.deepEqual(
    polls.map((asked) => [asked[0], asked.length]),
    Array(3).fill(['0', 500]),
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

/** A cache; `remember` stores a secret that a lookup found. */
function setUpCache() {
  const clock = manualClock()
  const cache = createVerificationCache(clock)
  const remember = (hash: string, leftMs?: number) =>
    cache.remember(hash, async () => ({ identity: identityOf(hash), leftMs }))
  const isKnown = (hash: string) => cache.get(hash)?.secretId === hash
  return { clock, cache, remember, isKnown }
}

test('PL-12 a verified secret is known for 5 s, or until its token expires', async () => {
  const { clock, remember, isKnown } = setUpCache()
  assert.deepEqual(await remember('long', 60_000), identityOf('long'))
  await remember('endless')
  await remember('short', 1000)
  const known = () => ['long', 'endless', 'short'].map(isKnown)
  clock.advance(999)
  assert.deepEqual(known(), [true, true, true])
  clock.advance(1)
  assert.deepEqual(known(), [true, true, false])
  clock.advance(3999)
  assert.deepEqual(known(), [true, true, false])
  clock.advance(1)
  assert.deepEqual(known(), [false, false, false])
})

test('PL-12 a dropped secret is forgotten and no other; a lookup that began before is not kept', async () => {
  const { cache, remember, isKnown } = setUpCache()
  await remember('a')
  await remember('b')
  const found = Promise.withResolvers<void>()
  const late = cache.remember('late', async () => {
    await found.promise
    return { identity: identityOf('late'), leftMs: undefined }
  })
  cache.drop(({ secretId }) => secretId === 'a')
  found.resolve()
  assert.equal((await late)?.secretId, 'late')
  assert.deepEqual(['a', 'b', 'late'].map(isKnown), [false, true, false])
  assert.equal(await cache.remember('none', async () => undefined), undefined)
})

test('a thousand verified secrets are known at a time; the one that was verified longest ago makes room', async () => {
  const { clock, remember, isKnown } = setUpCache()
  await remember('refreshed')
  await remember('oldest')
  clock.advance(5000)
  assert.equal(isKnown('refreshed'), false)
  await remember('oldest')
  await remember('refreshed')
  for (let count = 2; count < 1000; count++) await remember(`${count}`)
  assert.deepEqual(['oldest', 'refreshed', '999'].map(isKnown), [true, true, true])
  await remember('one more')
  assert.deepEqual(['oldest', 'refreshed', '999', 'one more'].map(isKnown), [false, true, true, true])
})
