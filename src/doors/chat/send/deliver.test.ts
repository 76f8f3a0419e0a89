/** What the chat channels share is in the channel contract. Here the clock stands still, so whatever needs a poll never comes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../../test/fakes/letters.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { createLocalInbox } from '../../../inbox/local/local-inbox.ts'
import { silentLog } from '../../../log.ts'
import { keepSession } from '../../../workspaces/sessions.ts'
import type { Channel, ChannelKind, ChatPost, SendResult, SoughtPost } from '../channel.ts'
import { type ChatDoorOptions, createChatDoor } from '../chat.ts'
import { deliveryDoor, type SessionContext } from '../chat-context.ts'
import { createPromptPosts } from '../prompts/prompt-posts.ts'
import { createArrivals } from '../store/arrivals.ts'
import { createChannels } from '../store/channels.ts'
import { createChatLog } from '../store/chat-log.ts'
import { createHomeChats } from '../store/home-chats.ts'
import { createPairings } from '../store/pairings.ts'
import { createPromptLog } from '../store/prompt-log.ts'

const LIMITS = { textCharactersMax: 100, uploadBytesMax: 0, downloadBytesMax: 0, editMs: 0, typingMs: 1000, nonceMs: 0 }

/** A service that a test switches off: `fault` is the result of every send until then. */
function recordingKind() {
  const sent: ChatPost[] = []
  const tries = new Map<string, number>()
  const edits: (readonly [messageId: string, text: string])[] = []
  const service: { fault: SendResult | undefined } = { fault: undefined }
  let isConnected = false
  const channel = {
    limits: LIMITS,
    async connect() {
      isConnected = true
      return { id: 'bot', name: 'Bot' }
    },
    render: (markdown: string) => [markdown],
    async send(post: ChatPost): Promise<SendResult> {
      tries.set(post.place, (tries.get(post.place) ?? 0) + 1)
      if (service.fault !== undefined) return service.fault
      sent.push(post)
      return { type: 'sent', messageId: String(sent.length) }
    },
    edit: async ({ messageId, text }: { messageId: string; text: string }) => {
      edits.push([messageId, text])
      return { type: 'sent', messageId } as const
    },
    findSent: async ({ text, afterMessageId = '0' }: SoughtPost) => {
      const index = sent.findIndex((post, n) => post.text === text && n + 1 > Number(afterMessageId))
      return index === -1 ? undefined : String(index + 1)
    },
    close: async () => undefined,
  } as unknown as Channel
  const kind = { kind: 'fake', open: async () => channel } as unknown as ChannelKind
  return { kind, sent, edits, tries, service, isConnected: () => isConnected }
}

/** A chat door with one bot, and a worker that answers. Door and store are on the same clock, which stands still. */
async function openDoor(t: TestContext) {
  const closeStore: (() => unknown)[] = []
  const { store, clock, addWorkspace } = openTestStore({
    after: (close) => void closeStore.push(close as () => unknown),
  })
  const log = silentLog
  const keep = (...[key, token]: [Parameters<typeof keepSession>[1], string | undefined]) =>
    keepSession('host', key, token)
  const local = createLocalInbox({ store, clock, log, host: 'host', keepSession: keep })
  const stored = {
    channels: createChannels(store),
    pairings: createPairings(store),
    chatLog: createChatLog(store),
    homes: createHomeChats(store),
    promptLog: createPromptLog(store),
    arrivals: createArrivals(store),
  }
  await stored.channels.add({ name: 'bot', kind: 'fake', token: 'secret', settings: {} })
  const recording = recordingKind()
  const door = createChatDoor({
    ...stored,
    deliveries: local.deliveries,
    store: local.store,
    workspaces: { get: async () => ({ name: 'echo' }) },
    findKind: async () => recording.kind,
    stateFolders: { open: async () => '', keepOnly: async () => undefined },
    outreach: { forward: async () => undefined },
    holder: 'host.1',
    clock,
    log,
  } as unknown as ChatDoorOptions)
  const workspaceId = await addWorkspace({ hosted: 0 })
  const stop = new AbortController()
  const worker = local.inbox.leases({ id: 'host.1', workspaces: [workspaceId] }, stop.signal)[Symbol.asyncIterator]()
  t.after(async () => {
    stop.abort()
    await worker.return?.()
    await door.close()
    local.close()
    for (const close of closeStore) await close()
  })
  await door.start()
  await waitUntil(recording.isConnected, 'the bot is connected')
  return {
    ...recording,
    clock,
    ...stored,
    deadLetters: local.deadLetters,
    workspaceId,
    /** The next message fails for good; its id. */
    async fail() {
      const directive = worker.next()
      await local.reception.admit(letterTo(workspaceId))
      const { value } = await directive
      assert.ok(value?.type === 'lease')
      await local.inbox.settle(value.lease, { type: 'dead', failure: { code: 'exit', message: 'it broke' } })
      return value.lease.messageId
    },
    deliveries: local.deliveries,
    /** The id of a task whose message waits. */
    ask: async () => (await local.reception.admit(letterTo(workspaceId))).taskId,
    async answer(place: string, text: string) {
      const directive = worker.next()
      await local.reception.admit({ ...letterTo(workspaceId), replyTo: { door: deliveryDoor('bot'), channel: place } })
      const { value } = await directive
      assert.ok(value?.type === 'lease')
      const outcome = { type: 'done', finality: 'completed', parts: [{ text }], artifacts: [] } as const
      await local.inbox.settle(value.lease, outcome)
    },
    /** Moves the clock in steps until the condition holds. The door works between two steps. */
    async passUntil(condition: () => boolean) {
      const startMs = clock.nowMs()
      while (!condition()) {
        clock.advance(5000)
        for (let turn = 0; turn < 8; turn++) await clock.settle()
      }
      return clock.nowMs() - startMs
    },
  }
}

test('GW-6 an answer without a follower is sent at once: the settle wakes the door, and the clock stands still', async (t) => {
  const { answer, sent } = await openDoor(t)
  await answer('general', 'the answer')
  await waitUntil(() => sent.length > 0, 'the answer is sent')
  assert.deepEqual(
    sent.map(({ place, text }) => [place, text]),
    [['general', 'the answer']],
  )
})

test('GW-6 an answer that may not have arrived is not taken for the equal one before it', async (t) => {
  const { answer, sent, service, deliveries } = await openDoor(t)
  await answer('general', 'the same')
  await waitUntil(() => sent.length > 0, 'the first answer is sent')
  service.fault = { type: 'unknown', error: 'The answer of Discord is missing.' }
  await answer('general', 'the same')
  await waitUntil(async () => (await deliveries.needingDecision()).length === 1, 'the second answer is unknown')
  assert.equal((await deliveries.needingDecision())[0]?.state, 'unknown')
})

test('GW-9 a prompt is sent after an outage, once; one that is over by then is not', async (t) => {
  const { ask, promptLog, clock, deliveries, sent, service, tries, passUntil } = await openDoor(t)
  service.fault = { type: 'failed', error: 'Discord failed with 502.' }
  const posts = createPromptPosts({ promptLog, deliveries, stored: { name: 'bot' } } as unknown as SessionContext)
  const taskId = await ask()
  const post = (place: string) =>
    posts.post({ place, taskId, askId: `ask in ${place}`, text: `prompt in ${place}` }, { buttonsOf: () => [] })
  for (const place of ['a', 'b', 'a']) await post(place)
  const endMs = clock.nowMs() + OUTAGE_MS
  await passUntil(() => clock.nowMs() >= endMs && ['a', 'b'].every((place) => (tries.get(place) ?? 0) > 10))
  const [over] = await promptLog.ofAsk('ask in b')
  if (over) await posts.close(over, 'It is over.')
  service.fault = undefined
  await passUntil(() => sent.length > 0)
  await passUntil(() => clock.nowMs() >= endMs + OUTAGE_MS)
  assert.deepEqual(
    sent.map(({ place, text }) => [place, text]),
    [['a', 'prompt in a']],
  )
  assert.equal((await promptLog.ofAsk('ask in a'))[0]?.messageId, '1')
  assert.deepEqual(await deliveries.needingDecision(), [])
})

const OUTAGES: readonly (readonly [string, SendResult])[] = [
  ['without a connection', { type: 'failed', error: 'Discord cannot be reached.', isUnsent: true }],
  ['of 502s', { type: 'failed', error: 'Discord failed with 502.' }],
  ['of limits', { type: 'failed', error: 'Discord asks to wait.', retryAfterMs: 1000 }],
]
const OUTAGE_MS = 25 * 60_000

for (const [title, fault] of OUTAGES)
  test(`GW-13 an outage of 25 minutes ${title}: the 50 answers that wait are sent after it, once, in order`, async (t) => {
    const { answer, sent, tries, service, clock, deliveries, passUntil } = await openDoor(t)
    service.fault = fault
    const places = Array.from({ length: 5 }, (_, n) => `place ${n}`)
    for (let n = 0; n < 10; n++) for (const place of places) await answer(place, `answer ${n}`)
    const endMs = clock.nowMs() + OUTAGE_MS
    const isTriedOften = () => places.every((place) => (tries.get(place) ?? 0) > 10)
    await passUntil(() => clock.nowMs() >= endMs && isTriedOften())
    assert.equal(sent.length, 0)
    service.fault = undefined
    await passUntil(() => sent.length >= 50)
    for (const place of places) {
      const texts = sent.flatMap((post) => (post.place === place ? [post.text] : []))
      assert.deepEqual(
        texts,
        Array.from({ length: 10 }, (_, n) => `answer ${n}`),
      )
    }
    assert.deepEqual(await deliveries.needingDecision(), [])
  })

test('GW-17 an owner is told in the home chat, once, what nobody has answered for two minutes; it says when that is over', async (t) => {
  const { sent, edits, clock, pairings, homes, promptLog, fail, deadLetters, workspaceId, passUntil } =
    await openDoor(t)
  const own = { channel: 'bot', person: 'eve', name: 'Eve', place: 'home' }
  await pairings.decide('bot/eve', { state: 'approved', role: 'owner', by: 'admin', mayChangeOwners: true })
  await homes.set(own)
  await homes.set({ ...own, person: 'ada', name: 'Ada', place: 'of a user' })
  const id = await fail()
  const quick = await fail()
  const startMs = clock.nowMs()
  await deadLetters.discard(workspaceId, quick)
  await passUntil(() => sent.length > 0)
  assert.ok(clock.nowMs() - startMs >= 2 * 60_000)
  await passUntil(() => clock.nowMs() - startMs > 10 * 60_000)
  assert.deepEqual(
    sent.map(({ place, buttons }) => [place, buttons]),
    [['home', []]],
  )
  assert.match(
    sent[0]?.text ?? '',
    /^`echo` needs you: `a message failed for good: it broke`\. .*molecule pending replay /,
  )
  assert.ok(sent[0]?.text.includes(id))
  await deadLetters.discard(workspaceId, id)
  await passUntil(() => edits.length > 0)
  assert.deepEqual([edits[0]?.[0], sent.length, await promptLog.ofChannel('bot')], ['1', 1, []])
})
