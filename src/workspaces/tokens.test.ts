import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore } from '../../test/harness/sqlite-store.ts'
import { createTokens } from './tokens/token-store.ts'

function openTokens(t: TestContext) {
  const { store, clock } = openTestStore(t)
  let reads = 0
  const counted: typeof store = {
    ...store,
    read(transaction) {
      reads += 1
      return store.read(transaction)
    },
  }
  const tokens = createTokens({ store: counted, clock, adminToken: 'a-token-of-thirty-two-bytes-or-so' })
  return { tokens, clock, countReads: () => reads }
}

test('PL-1 a login code works until its tenth minute ends', async (t) => {
  const { tokens, clock } = openTokens(t)
  const [inTime, late] = [tokens.issueLoginCode(), tokens.issueLoginCode()]
  clock.advance(10 * 60_000 - 1)
  assert.ok(await tokens.exchangeLoginCode(inTime))
  clock.advance(2)
  assert.equal(await tokens.exchangeLoginCode(late), undefined)
})

test('PL-12 a token is read from the store once in five seconds: the time in which a revocation elsewhere takes effect', async (t) => {
  const { tokens, clock, countReads } = openTokens(t)
  const { secret } = await tokens.create({ name: 'ci', role: 'member' })
  const verify = async () => {
    const before = countReads()
    assert.equal((await tokens.verify(secret))?.name, 'ci')
    return countReads() - before
  }
  assert.equal((await verify()) > 0, true)
  clock.advance(4999)
  assert.equal(await verify(), 0)
  clock.advance(1)
  assert.equal((await verify()) > 0, true)
})
