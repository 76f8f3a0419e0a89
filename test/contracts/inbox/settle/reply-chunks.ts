/** How a reply reaches the readers of its task: begun once, appended, closed, and never twice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry } from '../../../../src/inbox/reception.ts'
import type { Outcome, TurnEvent } from '../../../../src/inbox/worker.ts'
import type { StreamResponse } from '../../../../src/protocol/a2a.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { createAddingReader, createPythonReader, type StreamReader } from '../../../fakes/strict-clients.ts'
import { done, failure, type InboxHarness } from '../harness.ts'

const text = (delta: string): TurnEvent => ({ type: 'text', delta })

export function replyChunkTests(harness: InboxHarness): void {
  const read = async (taskId: string, options: { afterSeq: number; wholeReplies?: boolean }): Promise<LogEntry[]> => {
    const entries: LogEntry[] = []
    for await (const entry of harness.local.reception.follow(taskId, options, AbortSignal.timeout(20_000))) {
      entries.push(entry)
    }
    return entries
  }
  const textOf = (reader: StreamReader, events: readonly StreamResponse[]) => {
    for (const event of events) reader.take(event)
    return reader.text
  }
  const chunksOf = (entries: readonly LogEntry[]) =>
    entries.flatMap(({ wire }) => wire.flatMap(({ artifactUpdate }) => artifactUpdate ?? []))
  /** A turn that streams these deltas, one row each, and ends so. Earlier attempts fail after their deltas. */
  const turn = async (attempts: readonly (readonly string[])[], outcome: Outcome) => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const snapshots: NonNullable<Awaited<ReturnType<typeof harness.local.reception.snapshot>>>[] = []
    const look = async () => {
      const snapshot = await harness.local.reception.snapshot(taskId)
      assert.ok(snapshot)
      snapshots.push(snapshot)
    }
    await harness.withWorker(id, async (worker) => {
      for (const [index, deltas] of attempts.entries()) {
        const lease = await worker.lease()
        await look()
        for (const [place, delta] of deltas.entries()) {
          await harness.local.inbox.append(lease, { from: place + 1, events: [text(delta)] })
          await look()
        }
        const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
        await harness.local.inbox.settle(lease, index === attempts.length - 1 ? outcome : retry)
      }
    })
    return { taskId, snapshots }
  }

  test('PL-5 the first chunk of a reply begins it, the others append, and the last adds only what is missing', async () => {
    const { taskId } = await turn([['he', 'llo \ud83d', '\ude00 w']], done('hello 😀 world'))
    const chunks = chunksOf(await read(taskId, { afterSeq: 0 }))
    const shown = chunks.map(({ append, lastChunk, artifact }) => [append, lastChunk, artifact.parts[0]?.text])
    assert.deepEqual(shown, [
      [false, false, 'he'],
      [true, false, 'llo \ud83d'],
      [true, false, '\ude00 w'],
      [true, true, 'orld'],
    ])
    const closed = await turn([['all of it']], done('all of it'))
    const last = chunksOf(await read(closed.taskId, { afterSeq: 0 })).at(-1)
    assert.deepEqual([last?.append, last?.lastChunk, last?.artifact.parts], [true, true, [{ text: '' }]])
    const silent = await turn([[]], done('at once'))
    const [only, ...more] = chunksOf(await read(silent.taskId, { afterSeq: 0 }))
    assert.deepEqual(
      [only?.append, only?.lastChunk, only?.artifact.parts, more],
      [false, true, [{ text: 'at once' }], []],
    )
  })

  test('PL-5 strict readers end with exactly the reply, from each snapshot and each place in the log', async () => {
    const file = { raw: 'AQI=', mediaType: 'image/png' }
    const cases: [string[][], Outcome, string][] = [
      [[['one ', 'two ', 'three']], done('one two three'), 'one two three'],
      [[['one ', 'two ']], done('one two three'), 'one two three'],
      [[['one ', 'two ']], { ...done(''), parts: [{ text: 'one two ' }, file] } as Outcome, 'one two '],
      [[['let me look', ' again']], done('the answer'), 'the answer'],
      [[['one two', ' and more']], done('one two'), 'one two'],
      [
        [
          ['wrong ', 'words'],
          ['right ', 'words'],
        ],
        done('right words!'),
        'right words!',
      ],
      [[[], ['right ', 'words']], done('right words!'), 'right words!'],
    ]
    for (const [attempts, outcome, expected] of cases) {
      const { taskId, snapshots } = await turn(attempts, outcome)
      const all = await read(taskId, { afterSeq: 0 })
      assert.equal(
        textOf(
          createPythonReader(),
          all.flatMap(({ wire }) => wire),
        ),
        expected,
      )
      // A reader that disconnects after an entry has the text so far and goes on with the next one.
      for (const { seq } of all) {
        const before = all.filter((entry) => entry.seq <= seq)
        const after = await read(taskId, { afterSeq: seq })
        assert.deepEqual([...before, ...after], all, `resumed after ${seq}: the same events`)
      }
      for (const { task, seq } of snapshots) {
        const events = (await read(taskId, { afterSeq: seq })).flatMap(({ wire }) => wire)
        assert.equal(textOf(createPythonReader(task.artifacts), events), expected)
      }
      const whole = chunksOf(await read(taskId, { afterSeq: 0, wholeReplies: true }))
      assert.equal(whole.length, 1, 'webhooks get the reply once')
      assert.deepEqual([whole[0]?.append, whole[0]?.lastChunk], [false, true])
      assert.equal(whole[0]?.artifact.parts[0]?.text, expected)
    }
  })

  test('PL-5 a reader that adds every text has the reply once, unless the reply is another than the stream', async () => {
    for (const attempts of [[['one ', 'two ']], [[], ['one ', 'two ']]]) {
      const { taskId } = await turn(attempts, done('one two three'))
      const events = (await read(taskId, { afterSeq: 0 })).flatMap(({ wire }) => wire)
      assert.equal(textOf(createAddingReader(), events), 'one two three')
    }
  })
}
