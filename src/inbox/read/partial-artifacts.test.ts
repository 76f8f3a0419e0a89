import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Artifact } from '../../protocol/a2a.ts'
import type { TurnEvent } from '../inbox.ts'
import type { LogItem } from './event-log.ts'
import { partialArtifacts } from './partial-artifacts.ts'

/** Answers the reads of the log from these rows, two at a time. A reader that never ends fails. */
function join(log: readonly (readonly LogItem[])[], settled: readonly Artifact[] = []): Artifact[] {
  const rows = log.map((items, index) => ({
    seq: index + 1,
    at_ms: 0,
    message_id: 'm1',
    items: JSON.stringify(items),
    reply_bytes: null,
  }))
  const reading = partialArtifacts({ id: 't1', contextId: 'c1' }, settled)
  let step = reading.next()
  for (let reads = 0; !step.done; reads++) {
    assert.ok(reads <= rows.length, 'it reads without end')
    const [, afterSeq] = step.value[0]?.values ?? []
    step = reading.next([rows.filter(({ seq }) => seq > Number(afterSeq)).slice(0, 2)])
  }
  return step.value
}

const turn = (event: TurnEvent): LogItem[] => [{ t: 'turn', event }]
const text = (delta: string): LogItem[] => turn({ type: 'text', delta })
const artifact = (parts: Artifact['parts'], append: boolean, more: object = {}): LogItem[] =>
  turn({ type: 'artifact', artifact: { artifactId: 'a1', parts, ...more }, append, lastChunk: false })

test('IN-5 the deltas of a reply become one text, over all pages of the log', () => {
  const reply = { artifactId: 'reply-m1', parts: [{ text: 'hello you' }] }
  assert.deepEqual(join([text('he'), text('llo'), text(' '), text('yo'), text('u')]), [reply])
  assert.deepEqual(join([text('hello'), [{ t: 'status', state: 'TASK_STATE_WORKING' }], text(' you')]), [reply])
})

test('IN-5 a new attempt voids what was said before, and an artifact without parts is not shown', () => {
  assert.deepEqual(join([text('wrong'), [{ t: 'reset' }]]), [])
  assert.deepEqual(join([text('wrong'), [{ t: 'reset' }], text('right')]), [
    { artifactId: 'reply-m1', parts: [{ text: 'right' }] },
  ])
  assert.deepEqual(join([artifact([{ text: 'a' }], false), artifact([{ text: 'b' }], false)]), [
    { artifactId: 'a1', parts: [{ text: 'b' }] },
  ])
})

test('IN-5 chunks of an artifact are joined: plain texts to one part, all other parts one after the other', () => {
  const chunks = [
    artifact([{ data: 0 }, { text: 'a' }], false, { name: 'a.txt' }),
    artifact([{ text: 'b' }, { data: 1 }], true),
    artifact([{ text: 'c' }], true),
    artifact([{ text: 'd', metadata: {} }], true),
    artifact([{ text: 'e' }], true),
    artifact([{ text: 'f' }, { text: 'g' }], true),
  ]
  assert.deepEqual(join(chunks), [
    {
      artifactId: 'a1',
      name: 'a.txt',
      parts: [
        { data: 0 },
        { text: 'ab' },
        { data: 1 },
        { text: 'c' },
        { text: 'd', metadata: {} },
        { text: 'ef' },
        { text: 'g' },
      ],
    },
  ])
})

test('IN-5 an artifact that a settled message has is not shown twice', () => {
  const whole = { artifactId: 'a1', parts: [{ text: 'whole' }] }
  assert.deepEqual(join([artifact([{ text: 'a' }], false), text('hi')], [whole]), [
    { artifactId: 'reply-m1', parts: [{ text: 'hi' }] },
  ])
})
