import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import type { Identity } from '../tokens.ts'
import { createVerificationCache } from './verification-cache.ts'

const identityOf = (secretId: string, tokenId = secretId): Identity => ({
  tokenId,
  secretId,
  name: secretId,
  role: 'member',
  principal: 'people',
  sender: { kind: 'person', id: tokenId, name: secretId, door: 'http' },
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
