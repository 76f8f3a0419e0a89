import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry } from '../../inbox/inbox.ts'
import type { StreamResponse, TaskState } from '../../protocol/a2a.ts'
import { webhookEvents } from './webhook-events.ts'

const NAMES = { taskId: 't', contextId: 'c' }
const status = (state: TaskState): StreamResponse => ({ statusUpdate: { ...NAMES, status: { state } } })
const chunk = (
  artifactId: string,
  text: string,
  more: { append?: boolean; lastChunk?: boolean } = {},
): StreamResponse => ({
  artifactUpdate: { ...NAMES, artifact: { artifactId, parts: [{ text }] }, ...more },
})

/** `seq.k` and what is told, for a log whose entries hold these events. */
async function told(...entries: StreamResponse[][]): Promise<string[]> {
  const lines: string[] = []
  async function* log(): AsyncIterable<LogEntry> {
    for (const [index, wire] of entries.entries()) yield { seq: index + 1, atMs: 0, wire }
  }
  for await (const { seq, k, event } of webhookEvents(log())) {
    const { statusUpdate, artifactUpdate } = event
    const words = artifactUpdate?.artifact.parts.map((part) => part.text).join('')
    lines.push(`${seq}.${k} ${statusUpdate?.status.state ?? `${artifactUpdate?.artifact.artifactId}=${words}`}`)
  }
  return lines
}

test('every status is told; an artifact is told once its last chunk has come, whole', async () => {
  const lines = await told(
    [status('TASK_STATE_WORKING'), chunk('a', 'one ')],
    [chunk('b', 'x', { lastChunk: true }), chunk('a', 'two', { append: true, lastChunk: true })],
    [status('TASK_STATE_COMPLETED')],
  )
  assert.deepEqual(lines, ['1.1 TASK_STATE_WORKING', '2.1 b=x', '2.2 a=one two', '3.1 TASK_STATE_COMPLETED'])
})

test('an artifact whose last chunk was never named is told before the end, and not twice', async () => {
  const lines = await told(
    [chunk('a', 'one ')],
    [chunk('a', 'two', { append: true })],
    [status('TASK_STATE_INPUT_REQUIRED')],
    [status('TASK_STATE_COMPLETED')],
  )
  assert.deepEqual(lines, ['3.1 a=one two', '3.2 TASK_STATE_INPUT_REQUIRED', '4.1 TASK_STATE_COMPLETED'])
})

test('pieces of a reply are passed over, so that pruning them changes nothing', async () => {
  const pieces = [chunk('reply-1', 'hel', { append: true }), chunk('reply-1', 'lo', { append: true })]
  const end = [chunk('reply-1', 'hello', { lastChunk: true }), status('TASK_STATE_COMPLETED')]
  assert.deepEqual(await told(pieces, end), ['2.1 reply-1=hello', '2.2 TASK_STATE_COMPLETED'])
  assert.deepEqual(await told([], end), ['2.1 reply-1=hello', '2.2 TASK_STATE_COMPLETED'])
  assert.deepEqual(await told(pieces, [status('TASK_STATE_FAILED')]), ['2.1 TASK_STATE_FAILED'])
})
