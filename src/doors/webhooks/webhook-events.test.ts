import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry } from '../../inbox/reception.ts'
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

/** `seq.k` and the content of each webhook event, for a log whose rows have these events. */
async function sentEvents(...entries: StreamResponse[][]): Promise<string[]> {
  const lines: string[] = []
  async function* log(): AsyncIterable<LogEntry> {
    for (const [index, wire] of entries.entries()) yield { seq: index + 1, atMs: 0, wire }
  }
  for await (const { seq, k, event } of webhookEvents(log())) {
    const { statusUpdate, artifactUpdate } = event
    const text = artifactUpdate?.artifact.parts.map((part) => part.text).join('')
    lines.push(`${seq}.${k} ${statusUpdate?.status.state ?? `${artifactUpdate?.artifact.artifactId}=${text}`}`)
  }
  return lines
}

test('PL-5 after each event there is the task: its status, and every complete artifact so far', async () => {
  async function* log(): AsyncIterable<LogEntry> {
    yield { seq: 1, atMs: 0, wire: [status('TASK_STATE_WORKING'), chunk('a', 'one ')] }
    yield {
      seq: 2,
      atMs: 0,
      wire: [chunk('a', 'two', { append: true, lastChunk: true }), chunk('b', 'x', { lastChunk: true })],
    }
    yield { seq: 3, atMs: 0, wire: [chunk('a', 'again', { lastChunk: true }), status('TASK_STATE_COMPLETED')] }
  }
  const tasks: string[] = []
  for await (const { task } of webhookEvents(log())) {
    const textOf = (parts: readonly { text?: string }[]) => parts.map((part) => part.text).join('')
    const texts = task.artifacts?.map(({ artifactId, parts }) => `${artifactId}=${textOf(parts)}`).join() ?? ''
    assert.deepEqual([task.id, task.contextId], ['t', 'c'])
    tasks.push(`${task.status.state} ${texts}`)
  }
  assert.deepEqual(tasks, [
    'TASK_STATE_WORKING ',
    'TASK_STATE_WORKING a=one two',
    'TASK_STATE_WORKING a=one two,b=x',
    'TASK_STATE_WORKING a=again,b=x',
    'TASK_STATE_COMPLETED a=again,b=x',
  ])
})

test('every status is sent, and an artifact once, complete, after its last chunk', async () => {
  const lines = await sentEvents(
    [status('TASK_STATE_WORKING'), chunk('a', 'one ')],
    [chunk('b', 'x', { lastChunk: true }), chunk('a', 'two', { append: true, lastChunk: true })],
    [status('TASK_STATE_COMPLETED')],
  )
  assert.deepEqual(lines, ['1.1 TASK_STATE_WORKING', '2.1 b=x', '2.2 a=one two', '3.1 TASK_STATE_COMPLETED'])
})

test('an artifact without a marked last chunk is sent before the end, and not twice', async () => {
  const lines = await sentEvents(
    [chunk('a', 'one ')],
    [chunk('a', 'two', { append: true })],
    [status('TASK_STATE_INPUT_REQUIRED')],
    [status('TASK_STATE_COMPLETED')],
  )
  assert.deepEqual(lines, ['3.1 a=one two', '3.2 TASK_STATE_INPUT_REQUIRED', '4.1 TASK_STATE_COMPLETED'])
})

test('a reply of another platform, relayed in chunks, is sent complete', async () => {
  const chunks = [chunk('reply-1', 'hel'), chunk('reply-1', 'lo', { append: true })]
  const end = [chunk('reply-1', '', { append: true, lastChunk: true }), status('TASK_STATE_COMPLETED')]
  assert.deepEqual(await sentEvents(chunks, end), ['2.1 reply-1=hello', '2.2 TASK_STATE_COMPLETED'])
})
