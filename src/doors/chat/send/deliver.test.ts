/** What the chat channels share is in the channel contract. Here the clock stands still, so whatever needs a poll never comes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../../test/fakes/letters.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { createLocalInbox } from '../../../inbox/local/local-inbox.ts'
import { silentLog } from '../../../log.ts'
import { keepSession } from '../../../workspaces/sessions.ts'
import type { Channel, ChannelKind, ChatPost } from '../channel.ts'
import { type ChatDoorOptions, createChatDoor } from '../chat.ts'
import { deliveryDoor } from '../chat-context.ts'
import { createChannels } from '../store/channels.ts'
import { createChatLog } from '../store/chat-log.ts'
import { createPairings } from '../store/pairings.ts'

const LIMITS = { textCharactersMax: 100, uploadBytesMax: 0, downloadBytesMax: 0, editMs: 0, typingMs: 1000, nonceMs: 0 }

function recordingKind() {
  const sent: ChatPost[] = []
  let isConnected = false
  const channel = {
    limits: LIMITS,
    async connect() {
      isConnected = true
      return { id: 'bot', name: 'Bot' }
    },
    render: (markdown: string) => [markdown],
    async send(post: ChatPost) {
      sent.push(post)
      return { type: 'sent', messageId: String(sent.length) }
    },
    close: async () => undefined,
  } as unknown as Channel
  const kind = { kind: 'fake', open: async () => channel } as unknown as ChannelKind
  return { kind, sent, isConnected: () => isConnected }
}

test('GW-6 an answer that nobody follows is sent at once: the settle wakes the door, and the clock stands still', async (t) => {
  const { store, addWorkspace } = openTestStore(t)
  const [clock, log] = [manualClock(), silentLog]
  const keep = (...[key, token]: [Parameters<typeof keepSession>[1], string | undefined]) =>
    keepSession('host', key, token)
  const local = createLocalInbox({ store, clock, log, host: 'host', keepSession: keep })
  const stored = { channels: createChannels(store), pairings: createPairings(store), chatLog: createChatLog(store) }
  await stored.channels.add({ name: 'bot', kind: 'fake', token: 'secret', settings: {} })
  const { kind, sent, isConnected } = recordingKind()
  const door = createChatDoor({
    ...stored,
    deliveries: local.deliveries,
    findKind: async () => kind,
    holder: 'host.1',
    clock,
    log,
  } as unknown as ChatDoorOptions)
  const workspaceId = await addWorkspace({ hosted: 0 })
  const stop = new AbortController()
  const worker = local.inbox.leases({ id: 'host.1', workspaces: [workspaceId] }, stop.signal)[Symbol.asyncIterator]()
  try {
    await door.start()
    await waitUntil(isConnected, 'the bot is connected')
    const directive = worker.next()
    await local.reception.admit({
      ...letterTo(workspaceId),
      replyTo: { door: deliveryDoor('bot'), channel: 'general' },
    })
    const { value } = await directive
    assert.ok(value?.type === 'lease')
    await local.inbox.settle(value.lease, {
      type: 'done',
      finality: 'completed',
      parts: [{ text: 'the answer' }],
      artifacts: [],
    })
    await waitUntil(() => sent.length > 0, 'the answer is sent')
  } finally {
    stop.abort()
    await worker.return?.()
    await door.close()
    local.close()
  }
  assert.deepEqual(
    sent.map(({ place, text }) => [place, text]),
    [['general', 'the answer']],
  )
})
