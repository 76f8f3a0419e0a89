import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import type { Task } from '../protocol/a2a.ts'
import { markRead } from './mark-read.ts'

const TASK: Task = { id: 'task', contextId: 'context', status: { state: 'TASK_STATE_COMPLETED' } }

/** Reads the task over a connection that closes as given; whether the read is forgotten. */
async function readOver(given: { finished: boolean; isClosedBefore?: boolean; conversationId?: string }) {
  let forgotten = false
  const reception = {
    markRead: async () => async () => {
      forgotten = true
    },
  }
  const { finished, isClosedBefore = false, conversationId = 'conversation' } = given
  const response = Object.assign(new EventEmitter(), { writableFinished: finished, destroyed: isClosedBefore })
  const identity = { principal: 'ws:w/c', ...(conversationId !== '' && { conversationId }) }
  await markRead(reception, { identity, response }, TASK)
  if (!isClosedBefore) response.emit('close')
  return forgotten
}

test('TW-3 a result counts as read when its answer was sent, and not when the caller disconnected before', async () => {
  assert.equal(await readOver({ finished: true }), false)
  assert.equal(await readOver({ finished: false }), true)
  assert.equal(await readOver({ finished: false, isClosedBefore: true }), true)
  assert.equal(await readOver({ finished: false, conversationId: '' }), false, 'people have no list of unread results')
})
