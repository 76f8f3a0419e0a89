import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ActivityView } from '../../client/views.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { type ChatNews, createToldMessages, followNews } from './conversation-news.ts'
import type { StoredMessage } from './stored-conversation.ts'

const ANSWERED = {
  id: 'm1',
  task_id: 't1',
  state: 'answered',
  text: 'count',
  attachments: [],
  sender: { kind: 'person', name: 'Ana' },
  reply: { text: 'three', artifacts: [] },
} as unknown as StoredMessage

test('CL-5 an answer that comes right before the platform goes away is shown when it is back', async () => {
  const ended: ActivityView = { type: 'status', task_id: 't1', state: 'TASK_STATE_COMPLETED' } as ActivityView
  const leave = new AbortController()
  let reads = 0
  const stored = {
    read: async () => undefined,
    speakerOf: async () => ({ name: 'Ana' }),
    async ofTask() {
      reads++
      if (reads === 1) throw new MoleculeError('timeout', 'the platform cannot be reached', { retryable: true })
      return { isSchedule: false, messages: [ANSWERED] }
    },
  }
  async function* events() {
    yield { seq: 1, events: [ended] }
    leave.abort()
  }
  const options = {
    client: { events } as unknown as PlatformClient,
    workspaceId: 'ws',
    clock: systemClock,
    stored,
    since: 0,
    told: createToldMessages(),
    command: 'molecule',
    isFollowed: () => false,
    isOwn: () => false,
    onQuestion: () => undefined,
  }
  const news: ChatNews[] = []
  for await (const one of followNews(options, leave.signal)) news.push(one)
  assert.deepEqual(news, [
    { type: 'said', from: { name: 'Ana' }, text: 'count', files: [] },
    { type: 'said', from: 'agent', text: 'three', files: [] },
  ])
})
