import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import type { Brief } from '../../protocol/brief.ts'
import { type Envelope, readEnvelope } from '../../protocol/envelope.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { sql } from '../../store/store.ts'
import { claimedHistory, withHistory } from './history.ts'

const PLAIN: Brief = { runtime: 'openai', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }

function envelopeOf(text: string, history?: unknown): Envelope {
  const message = { messageId: `id of ${text}`, role: 'ROLE_USER', parts: [{ text }] }
  const metadata = history === undefined ? {} : { metadata: { history } }
  return readEnvelope({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, ...metadata } })
}

async function setUp(t: TestContext) {
  const store = openSqlite({ path: join(temporaryDir(t), 'm.db'), clock: systemClock })
  t.after(() => store.close())
  let n = 0
  const add = (text: string, { state = 'done', answer = '', conversation = 'c' } = {}) =>
    store.write(function* () {
      n += 1
      const reply = state === 'done' ? JSON.stringify({ parts: [{ text: answer }], artifacts: [] }) : null
      yield* sql(
        `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
           envelope, sender, state, admitted_at, ready_at, expires_at, settled_at, reply)
         values ($1, 'w', $5, 't', $2, $3, '', '', $4, '{}', $6, 0, 0, 0, 0, $7)`,
        [`m${n}`, n, Buffer.from(`${n}`), JSON.stringify(envelopeOf(text).raw), conversation, state, reply],
      )
      return `m${n}`
    })
  let reads = 0
  const counting = {
    ...store,
    read: ((transaction) => {
      reads += 1
      return store.read(transaction)
    }) as typeof store.read,
  }
  const usesHistory = (runtime: string) => runtime === 'openai'
  const historyOf = async (messageId: string, envelope: Envelope, brief = PLAIN) => {
    const makeBrief = withHistory(async () => brief, { store: counting, usesHistory })
    const { history } = await makeBrief({ conversationId: 'c', messageId, envelope })
    return history?.map(({ role, parts }) => `${role === 'ROLE_USER' ? 'u' : 'a'}: ${parts[0]?.text}`)
  }
  return { add, historyOf, reads: () => reads }
}

test('RT-3 the history is the last twenty answered messages of the stored conversation before this one', async (t) => {
  const { add, historyOf } = await setUp(t)
  await add('elsewhere', { answer: 'x', conversation: 'other' })
  for (let k = 1; k <= 12; k++) await add(`q${k}`, { answer: `a${k}` })
  await add('failed', { state: 'dead' })
  const now = await add('now', { state: 'leased' })
  await add('later', { state: 'queued' })
  const history = await historyOf(now, envelopeOf('now', [{ role: 'user', content: 'a claim' }]))
  assert.equal(history?.length, 20)
  assert.deepEqual(history?.slice(0, 2), ['u: q3', 'a: a3'])
  assert.deepEqual(history?.slice(-2), ['u: q12', 'a: a12'])
})

test('RT-3 the history that the client sends is used where nothing is stored, at most twenty messages', async (t) => {
  const { add, historyOf } = await setUp(t)
  const now = await add('now', { state: 'leased' })
  const claim = [
    { role: 'user', parts: [{ kind: 'text', text: 'one' }] },
    { role: 'assistant', content: 'two' },
    { role: 'stranger', content: 'no' },
    { role: 'agent', parts: [{ nonsense: 1 }] },
    7,
  ]
  assert.deepEqual(await historyOf(now, envelopeOf('now', claim)), ['u: one', 'a: two'])
  const many = Array.from({ length: 25 }, (_, k) => ({ role: 'user', content: `c${k}` }))
  assert.deepEqual((await historyOf(now, envelopeOf('now', many)))?.length, 20)
  assert.equal(await historyOf(now, envelopeOf('now')), undefined)
})

test('RT-3 an agent with its own sessions gets no history and costs no query', async (t) => {
  const { add, historyOf, reads } = await setUp(t)
  await add('q', { answer: 'a' })
  const now = await add('now', { state: 'leased' })
  assert.equal(await historyOf(now, envelopeOf('now'), { ...PLAIN, runtime: 'exec' }), undefined)
  assert.equal(reads(), 0)
})

test('RT-3 a history of any shape from the client never breaks a turn', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (history) => {
      const messages = claimedHistory({ ...envelopeOf('x'), raw: { params: { metadata: { history } } } })
      assert.ok(messages.length <= 20 && messages.every(({ parts }) => parts.length > 0))
    }),
    { numRuns: 300 },
  )
})
