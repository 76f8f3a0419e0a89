import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PlatformClient } from '../../client/platform-client.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { openConversation } from './conversation.ts'

test('CL-5 a chat reports an outage once and not at each retry, and the next outage again', async () => {
  const unreachable = new MoleculeError('timeout', 'the platform cannot be reached', { retryable: true })
  let failures = 0
  const client = {
    async call() {
      if (failures-- > 0) throw unreachable
      return { next: 1, activity: [] }
    },
    async sendMessage() {
      throw new MoleculeError('invalid_request', 'refused')
    },
  }
  const reported: MoleculeError[] = []
  const conversation = openConversation({
    client: client as unknown as PlatformClient,
    workspaceId: 'ws',
    contextId: 'terminal',
    clock: { ...systemClock, after: (_delayMs, callback) => systemClock.after(0, callback) },
    command: 'molecule',
    onUnreachable: (error) => reported.push(error),
    onReason: () => undefined,
  })
  for (const [outage, expected] of [
    [3, 1],
    [2, 2],
  ] as const) {
    failures = outage
    const turn = conversation.say({ text: 'hello', files: [] }, AbortSignal.timeout(60_000))
    await assert.rejects(turn[Symbol.asyncIterator]().next(), /refused/)
    assert.equal(reported.length, expected)
  }
})
