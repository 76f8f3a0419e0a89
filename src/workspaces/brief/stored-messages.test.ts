import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import type { Brief } from '../../protocol/brief.ts'
import { readEnvelope } from '../../protocol/envelope.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { sql } from '../../store/store.ts'
import { withEarlierConversation } from './earlier-conversation.ts'
import { exchangeOf, withHistory } from './history.ts'

const PLAIN: Brief = { runtime: 'x', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }
const CHARACTERS_MAX = 1_000_000
const CANCELLED = '(The user cancelled this turn before its end.)'
const FAILED = '(This turn failed without an answer.)'

type Parts = readonly Record<string, unknown>[]

function envelopeOf(parts: Parts, metadata?: object) {
  const message = { messageId: 'sent', role: 'ROLE_USER', parts }
  return readEnvelope({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message, ...(metadata !== undefined && { metadata }) },
  })
}

interface Added {
  readonly parts?: Parts
  readonly state?: string
  /** Null: the message has no reply. */
  readonly answer?: string | null
  readonly begun?: number
  readonly retried?: number
  readonly conversation?: string
  readonly replayedAs?: string
  /** The length of envelope and reply together. */
  readonly characters?: number
}

/** Stored messages of one conversation, and the briefs of the last one. */
function setUp(t: TestContext) {
  const store = openSqlite({ path: join(temporaryDir(t), 'm.db'), clock: systemClock })
  t.after(() => store.close())
  let n = 0
  const add = async (text: string, options: Added = {}) => {
    const { state = 'done', begun = 1, retried = 0, conversation = 'c', replayedAs, characters } = options
    const { answer = state === 'done' ? `re ${text}` : null } = options
    n += 1
    const envelope = JSON.stringify(envelopeOf(options.parts ?? [{ text }]).raw)
    const replyOf = (said: string) => JSON.stringify({ parts: [{ text: said }], artifacts: [] })
    const filled = 'x'.repeat(Math.max(0, (characters ?? 0) - envelope.length - replyOf('').length))
    const reply = answer === null ? null : replyOf(characters === undefined ? answer : filled)
    await store.write(() =>
      sql(
        `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
           envelope, sender, state, admitted_at, ready_at, expires_at, settled_at, reply, begun, session_retried,
           replayed_as) values ($1, 'w', $2, 't', $3, $4, '', '', $5, '{}', $6, 0, 0, 0, 0, $7, $8, $9, $10)`,
        [
          ...[`m${n}`, conversation, n, Buffer.from(`${n}`), envelope, state, reply, begun, retried],
          replayedAs ?? null,
        ],
      ),
    )
    return `m${n}`
  }
  const keepSession = (conversation: string) =>
    store.write(() =>
      sql(
        `insert into sessions (conversation_id, workspace_id, host, runtime, token, updated_at)
         values ($1, 'w', 'other', 'x', 't', 0)`,
        [conversation],
      ),
    )
  const keyOf = (messageId: string, metadata?: object) => ({
    conversationId: 'c',
    messageId,
    envelope: envelopeOf([{ text: 'now' }], metadata),
  })
  const historyOf = async (messageId: string, claimed?: unknown) => {
    const makeBrief = withHistory(async () => PLAIN, { store, usesHistory: () => true })
    const { history } = await makeBrief(keyOf(messageId, claimed === undefined ? undefined : { history: claimed }))
    return history?.map(({ role, parts }) => `${role === 'ROLE_USER' ? 'u' : 'a'}: ${parts[0]?.text}`)
  }
  const earlierBrief = (messageId: string, { epoch = 2, sessionRetried = false, keeps = true, brief = PLAIN } = {}) =>
    withEarlierConversation(async () => brief, { store, keepsSessions: () => keeps })({
      ...keyOf(messageId),
      epoch,
      sessionRetried,
    })
  const linesOf = async (messageId: string) => {
    const { earlierConversation } = await earlierBrief(messageId)
    return earlierConversation?.text?.split('\n').slice(3, -1)
  }
  return { add, keepSession, historyOf, earlierBrief, linesOf }
}

/** Messages of every kind around one that is briefed. */
async function addMixed({ add }: ReturnType<typeof setUp>) {
  await add('elsewhere', { conversation: 'other' })
  await add('answered')
  await add('failed', { state: 'dead' })
  await add('expired', { state: 'dead', begun: 0 })
  await add('replayed', { state: 'dead', replayedAs: 'm9' })
  await add('cancelled', { state: 'canceled' })
  await add('withdrawn', { state: 'canceled', begun: 0 })
  await add('still running', { state: 'leased' })
  await add('never begun', { state: 'queued', begun: 0 })
  await add('huge', { characters: CHARACTERS_MAX + 1 })
  // A message that is cancelled while its brief is made.
  const now = await add('now', { state: 'canceled' })
  await add('later')
  return now
}

test('RT-3 the history has what was answered or cancelled before this message, and nothing else', async (t) => {
  const stored = setUp(t)
  const now = await addMixed(stored)
  assert.deepEqual(await stored.historyOf(now), ['u: answered', 'a: re answered', 'u: cancelled', `a: ${CANCELLED}`])
})

test('RT-15 a new session gets what was answered, cancelled or failed before this message, and nothing else', async (t) => {
  const stored = setUp(t)
  const now = await addMixed(stored)
  assert.deepEqual(await stored.linesOf(now), [
    ...['User: answered', 'You: re answered', 'User: failed', `You: ${FAILED}`],
    ...['User: cancelled', `You: ${CANCELLED}`],
  ])
})

test('RT-3 RT-15 a message of exactly a million characters is not left out for its length', async (t) => {
  const { add, historyOf, linesOf } = setUp(t)
  await add('long', { characters: CHARACTERS_MAX })
  const now = await add('now', { state: 'leased' })
  assert.deepEqual((await historyOf(now))?.length, 2)
  assert.equal((await linesOf(now))?.[0], 'User: long')
})

test('RT-3 a history of exactly a million characters is whole; with one more the oldest message is left out', async (t) => {
  const { add, historyOf } = setUp(t)
  const now = await add('now', { state: 'leased' })
  const sizeOf = (content: string) => JSON.stringify([{ text: content }]).length
  const newest = 'n'.repeat(600_000)
  const oldest = 'o'.repeat(CHARACTERS_MAX - sizeOf(newest) - sizeOf(''))
  const claim = (first: string) => [
    { role: 'user', content: first },
    { role: 'agent', content: newest },
  ]
  assert.deepEqual(await historyOf(now, claim(oldest)), [`u: ${oldest}`, `a: ${newest}`])
  assert.deepEqual(await historyOf(now, claim(`${oldest}o`)), [`a: ${newest}`])
})

test('RT-3 one message of the client is a history too; its text may be in content, in text or in parts', async (t) => {
  const { add, historyOf } = setUp(t)
  const now = await add('now', { state: 'leased' })
  assert.deepEqual(await historyOf(now, [{ role: 'agent', content: '~' }]), ['a: ~'])
  const claim = [
    { role: 'user', content: null, text: 'one' },
    { role: 'user', content: '', text: 'not this' },
    { role: 'agent', parts: [{ text: 'two' }, { text: 'more' }] },
    { role: 'user', parts: [] },
  ]
  assert.deepEqual(await historyOf(now, claim), ['u: one', 'a: two'])
  assert.equal(await historyOf(now, []), undefined)
})

test('RT-3 a stored message without a reply has a place for it', () => {
  const envelope = JSON.stringify(envelopeOf([{ text: 'hi' }]).raw)
  const replyTo = (state: string) => exchangeOf({ id: 'm', state, envelope, reply: null })[1]
  const reply = (text: string) => ({ messageId: 'm.reply', role: 'ROLE_AGENT', parts: [{ text }] })
  assert.deepEqual(['canceled', 'dead', 'done'].map(replyTo), [reply(CANCELLED), reply(FAILED), reply('')])
})

test('RT-15 the block names its reason, and parts that are no text are described', async (t) => {
  const { add, earlierBrief } = setUp(t)
  await add('', { parts: [{ text: 'look' }, { url: 'https://x/a.png', mediaType: 'image/png' }] })
  const now = await add('now', { state: 'leased' })
  const note = 'These are its last messages as the platform stored them, the oldest first. Do not answer them again.'
  const block = (why: string) =>
    [
      ...['<earlier_conversation>', `${why} ${note}`, '', 'User: look', '[attached file: image/png, https://x/a.png]'],
      ...['You: re ', '</earlier_conversation>'],
    ].join('\n')
  assert.deepEqual(await earlierBrief(now), {
    ...PLAIN,
    earlierConversation: { text: block('You have no memory of this conversation yet.') },
  })
  const notice =
    "The agent's own memory of this conversation was lost. It got the last 2 messages that the platform has stored."
  assert.deepEqual((await earlierBrief(now, { sessionRetried: true })).earlierConversation, {
    text: block('Your own memory of this conversation was lost.'),
    notice,
  })
})

test('RT-15 a lost session without a stored message has only its notice; without a loss the brief is unchanged', async (t) => {
  const { add, keepSession, earlierBrief } = setUp(t)
  const now = await add('now', { state: 'leased' })
  assert.equal(await earlierBrief(now), PLAIN)
  await keepSession('another')
  assert.equal(await earlierBrief(now), PLAIN, 'the session of another conversation')
  const notice = "The agent's own memory of this conversation was lost. No earlier message of it is stored here."
  assert.deepEqual(await earlierBrief(now, { sessionRetried: true }), { ...PLAIN, earlierConversation: { notice } })
  await keepSession('c')
  assert.deepEqual(await earlierBrief(now), { ...PLAIN, earlierConversation: { notice } })
  assert.equal(await earlierBrief(now, { keeps: false }), PLAIN)
  assert.equal(await earlierBrief(now, { epoch: 1, sessionRetried: true }), PLAIN)
  const brief = { ...PLAIN, sessionToken: 's' }
  assert.equal(await earlierBrief(now, { brief, sessionRetried: true }), brief)
})

test('RT-15 a loss is told with the next answer, and not again after it', async (t) => {
  const { add, earlierBrief } = setUp(t)
  const noticed = async () => {
    const now = await add('now', { state: 'queued', begun: 0 })
    return (await earlierBrief(now)).earlierConversation?.notice !== undefined
  }
  await add('first')
  assert.equal(await noticed(), false)
  await add('lost and failed', { state: 'dead', retried: 1 })
  assert.equal(await noticed(), true)
  await add('lost and failed again', { state: 'dead' })
  assert.equal(await noticed(), true)
  await add('lost and answered', { retried: 1 })
  assert.equal(await noticed(), false)
})

test('RT-15 the block has 64 KiB of lines: exactly so many fit, and one byte more leaves the oldest out', async (t) => {
  for (const more of [0, 1]) {
    const { add, linesOf } = setUp(t)
    // Each line and its end are 8 KiB.
    for (let count = 0; count < 4; count++)
      await add('u'.repeat(8185 + (count === 0 ? more : 0)), { answer: 'y'.repeat(8186) })
    const now = await add('now', { state: 'leased' })
    assert.equal((await linesOf(now))?.length, 8 - more)
  }
})

test('RT-15 a message of 8192 characters is whole, and a longer one is cut', async (t) => {
  const { add, linesOf } = setUp(t)
  await add('u'.repeat(8192), { answer: 'y'.repeat(8193) })
  const now = await add('now', { state: 'leased' })
  assert.deepEqual(await linesOf(now), [`User: ${'u'.repeat(8192)}`, `You: ${'y'.repeat(8192)} [cut]`])
})

test('RT-15 a new session gets the last ten exchanges, the oldest first', async (t) => {
  const { add, linesOf } = setUp(t)
  for (let count = 1; count <= 11; count++) await add(`q${count}`, { answer: `a${count}` })
  const now = await add('now', { state: 'leased' })
  const expected = Array.from({ length: 10 }, (_, index) => [`User: q${index + 2}`, `You: a${index + 2}`]).flat()
  assert.deepEqual(await linesOf(now), expected)
})
