/** Round trips of generated values through 0.3, and the exact shapes that other implementations expect. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  event,
  message,
  part,
  pushConfig,
  v03Event,
  v03Message,
  v03Part,
} from '../../../test/generators/protocol-values.ts'
import type { Part, TaskState } from '../a2a.ts'
import { pushConfigFromV03, pushConfigToV03 } from '../push-config.ts'
import { eventFromV03, eventToV03, messageFromV03, messageToV03, taskFromV03 } from './v03.ts'
import { partFromV03, partToV03 } from './v03-part.ts'
import type { V03Part, V03StatusUpdate } from './v03-types.ts'

/** The value after a trip over the wire. */
const wired = <T>(value: T): T => JSON.parse(JSON.stringify(value))

test('BK-2 every 1.0 part survives a round trip through 0.3', () => {
  fc.assert(
    fc.property(part, (value) => assert.deepEqual(wired(partFromV03(wired(partToV03(value)))), wired(value))),
    { numRuns: 2000 },
  )
})

test('BK-2 every 0.3 part survives a round trip through 1.0', () => {
  fc.assert(
    fc.property(v03Part, (value) => assert.deepEqual(wired(partToV03(wired(partFromV03(value)))), wired(value))),
    { numRuns: 2000 },
  )
})

test('a part that is translated again and again stays the same', () => {
  fc.assert(
    fc.property(part, fc.integer({ min: 1, max: 5 }), (value, hops) => {
      // A relay that puts the 0.3 form into a 1.0 part's metadata nests the keys.
      const disguise = (given: Part): Part => {
        const { metadata } = partToV03(given)
        return metadata === undefined ? given : { ...given, metadata }
      }
      let disguised = value
      for (let hop = 0; hop < hops; hop++) disguised = disguise(disguised)
      assert.deepEqual(wired(partFromV03(partToV03(disguised))), wired(disguised))
    }),
  )
})

test('a part for a 0.3 caller has only 0.3 members', () => {
  const members = {
    text: ['kind', 'text', 'metadata'],
    file: ['kind', 'file', 'metadata'],
    data: ['kind', 'data', 'metadata'],
  }
  fc.assert(
    fc.property(part, (value) => {
      const out = partToV03(value)
      for (const name of Object.keys(out)) assert.ok(members[out.kind].includes(name), name)
      if (out.kind === 'data') assert.ok(typeof out.data === 'object' && out.data !== null && !Array.isArray(out.data))
    }),
  )
})

test('metadata keys carry what 0.3 cannot express', () => {
  const table: [Part, V03Part][] = [
    [{ text: 'a' }, { kind: 'text', text: 'a' }],
    [{ data: { a: 1 } }, { kind: 'data', data: { a: 1 } }],
    // As @a2a-js/sdk writes and reads it.
    [{ data: [1] }, { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } }],
    [
      { data: null, metadata: { a: 1 } },
      { kind: 'data', data: { value: null }, metadata: { a: 1, data_part_compat: true } },
    ],
    [
      { text: '# a', mediaType: 'text/markdown', filename: 'a.md', metadata: { a: 1 } },
      {
        kind: 'text',
        text: '# a',
        metadata: { a: 1, molecule_part: { mediaType: 'text/markdown', filename: 'a.md' } },
      },
    ],
    [
      { raw: 'QQ==', mediaType: 'image/png', filename: 'a.png' },
      { kind: 'file', file: { bytes: 'QQ==', mimeType: 'image/png', name: 'a.png' } },
    ],
    [{ url: 'https://a/b' }, { kind: 'file', file: { uri: 'https://a/b' } }],
  ]
  for (const [ours, theirs] of table) {
    assert.deepEqual(partToV03(ours), theirs)
    assert.deepEqual(partFromV03(theirs), ours)
  }
})

test('metadata keys that we did not write stay unchanged', () => {
  const strangers: V03Part[] = [
    { kind: 'text', text: 'a', metadata: { molecule_part: 'mine' } },
    { kind: 'text', text: 'a', metadata: { molecule_part: { mediaType: 5 } } },
    { kind: 'data', data: { value: { a: 1 } }, metadata: { data_part_compat: true } },
    { kind: 'data', data: { value: 1, more: 2 }, metadata: { data_part_compat: true } },
  ]
  for (const stranger of strangers) assert.deepEqual(partFromV03(stranger).metadata, stranger.metadata)
})

test('messages survive a round trip through the other version', () => {
  fc.assert(fc.property(message, (value) => assert.deepEqual(wired(messageFromV03(messageToV03(value))), wired(value))))
  fc.assert(
    fc.property(v03Message, (value) => assert.deepEqual(wired(messageToV03(messageFromV03(value))), wired(value))),
  )
})

test('tasks and stream events survive a round trip through the other version', () => {
  fc.assert(fc.property(event, (value) => assert.deepEqual(wired(eventFromV03(eventToV03(value))), wired(value))))
  fc.assert(fc.property(v03Event, (value) => assert.deepEqual(wired(eventToV03(eventFromV03(value))), wired(value))))
})

test('final is true exactly when the state is final or waits for the caller', () => {
  const finals: Record<TaskState, boolean> = {
    TASK_STATE_SUBMITTED: false,
    TASK_STATE_WORKING: false,
    TASK_STATE_COMPLETED: true,
    TASK_STATE_FAILED: true,
    TASK_STATE_CANCELED: true,
    TASK_STATE_REJECTED: true,
    TASK_STATE_INPUT_REQUIRED: true,
    TASK_STATE_AUTH_REQUIRED: true,
  }
  for (const [state, final] of Object.entries(finals) as [TaskState, boolean][]) {
    const out = eventToV03({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } }) as V03StatusUpdate
    assert.equal(out.final, final, state)
  }
})

test('the state unknown does not close a task', () => {
  const task = taskFromV03({ kind: 'task', id: 't', contextId: 'c', status: { state: 'unknown' } })
  assert.equal(task.status.state, 'TASK_STATE_WORKING')
})

test('push configs survive a round trip through 0.3, and the first of several schemes is kept', () => {
  fc.assert(fc.property(pushConfig, (value) => assert.deepEqual(pushConfigFromV03(pushConfigToV03(value)), value)))
  const v03 = {
    taskId: 't',
    pushNotificationConfig: { url: 'https://a', authentication: { schemes: ['Bearer'], credentials: 'c' } },
  }
  assert.deepEqual(pushConfigToV03(pushConfigFromV03(v03)), v03)
  const two = {
    taskId: 't',
    pushNotificationConfig: { url: 'https://a', authentication: { schemes: ['Basic', 'Bearer'] } },
  }
  assert.deepEqual(pushConfigFromV03(two).authentication, { scheme: 'Basic' })
})
