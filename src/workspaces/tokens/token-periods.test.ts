import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ulid, workspaceId } from '../../ids.ts'
import { createConversationTokens } from './conversation-tokens.ts'

const PERIOD_MS = 12 * 3600_000

test('RT-12 a conversation that was given a token in one period gets another one in the next', () => {
  let nowMs = 1000 * PERIOD_MS
  const tokens = createConversationTokens({ secret: randomBytes(32), run: ulid(), nowMs: () => nowMs })
  const subject = { workspaceId: workspaceId(), conversationId: ulid() }
  const issue = () => tokens.issue(subject, { generation: 0, isForBridge: false })
  const expiryOf = (token: string) => tokens.read(token)?.expiresAtMs
  const first = issue()
  nowMs += PERIOD_MS - 1
  assert.equal(issue(), first)
  nowMs += 1
  assert.deepEqual([expiryOf(first), expiryOf(issue())], [1002 * PERIOD_MS, 1003 * PERIOD_MS])
})
