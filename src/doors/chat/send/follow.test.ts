import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { systemClock } from '../../../clock.ts'
import { silentLog } from '../../../log.ts'
import type { ReactionState } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { Prompts } from '../prompts/prompts.ts'
import { createFollower } from './follow.ts'

test('GW-2 a task is followed again after the store failed for a moment', async () => {
  const reactions: ReactionState[] = []
  let reads = 0
  let isClosed = false
  const context = {
    logs: {
      async resolveCursor() {
        reads += 1
        if (reads === 1) throw new Error('the store is away')
        return 0
      },
    },
    channel: { limits: { textCharactersMax: 2000 } },
    live: { of: () => ({ isTaken: true, onClose: () => undefined }) },
    reception: { task: async () => ({ status: { state: 'TASK_STATE_COMPLETED' } }) },
    signs: { react: async (_: unknown, state: ReactionState) => void reactions.push(state) },
    chatLog: {
      find: async () => undefined,
      async close() {
        isClosed = true
      },
    },
    clock: systemClock,
    log: silentLog,
    stored: { name: 'socket' },
    signal: new AbortController().signal,
  } as unknown as SessionContext
  const prompts = { expire: async () => undefined } as unknown as Prompts
  const message = { channel: 'socket', place: 'p', id: '1', messageId: '1', person: 'ada', receivedAtMs: 0 }
  createFollower(context, prompts).follow({ ...message, taskId: 'task' }, 'ws')
  await waitUntil(() => isClosed, 'the message is closed')
  assert.deepEqual([reads, reactions], [2, ['done']])
})
