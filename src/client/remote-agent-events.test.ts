import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TASK_STATES } from '../protocol/a2a.ts'
import { readRemoteEvent, readRemoteTask } from './remote-agent-events.ts'

const parts = [{ text: 'x' }]
const said = { messageId: 'm', role: 'ROLE_AGENT', parts }
const status = { state: 'TASK_STATE_COMPLETED' }
const task = { id: 't', contextId: 'c', status }
const ids = { taskId: 't', contextId: 'c' }

test('AG-11 each event of 0.3 is named by its kind and read like the same event of 1.0', () => {
  const part = { kind: 'text', text: 'x' }
  const old = { kind: 'message', messageId: 'm', role: 'agent', parts: [part], metadata: { k: 1 } }
  const made = { artifactId: 'a', name: 'n', parts: [part], extensions: ['e', 'f'] }
  const end = { state: 'completed', timestamp: 'then', message: old }
  const newSaid = { ...said, metadata: { k: 1 } }
  const newEnd = { ...status, timestamp: 'then', message: newSaid }
  const newMade = { ...made, parts }
  const read: [old: object, modern: object][] = [
    [old, { message: newSaid }],
    [
      { kind: 'task', id: 't', contextId: 'c', status: end, artifacts: [made], history: [old] },
      { task: { ...task, status: newEnd, artifacts: [newMade], history: [newSaid] } },
    ],
    [
      { kind: 'status-update', ...ids, status: end, final: true, metadata: { k: 1 } },
      { statusUpdate: { ...ids, status: newEnd, metadata: { k: 1 } } },
    ],
    [
      { kind: 'artifact-update', ...ids, artifact: made, append: true, metadata: { k: 1 } },
      { artifactUpdate: { ...ids, artifact: newMade, append: true, lastChunk: false, metadata: { k: 1 } } },
    ],
    [
      { kind: 'artifact-update', ...ids, artifact: made, lastChunk: true },
      { artifactUpdate: { ...ids, artifact: newMade, append: false, lastChunk: true } },
    ],
  ]
  for (const [event, expected] of read) assert.deepEqual(readRemoteEvent(event), expected)
})

test('AG-11 an answer that is no event is refused, and the sentence says what is wrong with it', () => {
  const refused = (value: unknown, problem: string) =>
    assert.throws(() => readRemoteEvent(value), {
      code: 'agent_failed',
      retryable: false,
      message: `the remote agent's answer is not A2A: ${problem}`,
    })
  refused([], 'the answer is not an object')
  refused({ kind: 'weather' }, 'it is no task, message or update')
  refused({ task: 7 }, 'the task is not an object')
  refused({ task: { ...task, id: '' } }, 'the task has no id')
  refused({ task: { ...task, id: 7 } }, 'the task has no id')
  refused({ task: { id: 't' } }, 'the status is not an object')
  refused({ task: { ...task, artifacts: [7] } }, 'the artifact is not an object')
  refused({ task: { ...task, history: [7] } }, 'the message is not an object')
  refused({ message: 7 }, 'the message is not an object')
  refused({ statusUpdate: 7 }, 'the status update is not an object')
  refused({ artifactUpdate: 7 }, 'the artifact update is not an object')
  refused({ artifactUpdate: ids }, 'the artifact is not an object')
  refused({ message: { ...said, parts: [{ text: 'x' }, 7] } }, 'parts[1] must be an object')
})

test('AG-11 every state is known in the spelling of both versions, and an unknown one counts as working', () => {
  const stateOf = (state: unknown) => readRemoteTask({ ...task, status: { state } }).status.state
  assert.deepEqual(TASK_STATES.map(stateOf), TASK_STATES)
  assert.deepEqual(
    ['submitted', 'working', 'completed', 'failed', 'canceled', 'input-required', 'rejected', 'auth-required'].map(
      stateOf,
    ),
    TASK_STATES,
  )
  for (const state of ['unknown', '', undefined, 7]) assert.equal(stateOf(state), 'TASK_STATE_WORKING')
})

test('AG-11 a field of the wrong type counts as absent', () => {
  const wrong = { contextId: 7, taskId: 7, extensions: [7], referenceTaskIds: 'r', metadata: [1] }
  assert.deepEqual(readRemoteEvent({ message: { messageId: 7, role: 7, parts, ...wrong } }), {
    message: { messageId: '', role: 'ROLE_AGENT', parts },
  })
  assert.deepEqual(readRemoteEvent({ message: { ...said, parts: 7, role: 'user' } }), {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
  })
  const artifact = { artifactId: 7, name: 7, description: 7, parts, extensions: 'e', metadata: 'm' }
  const strange = { ...task, contextId: 7, status: { ...status, message: 'm', timestamp: 7 }, history: 7 }
  assert.deepEqual(readRemoteTask({ ...strange, artifacts: [artifact], metadata: 7 }), {
    ...task,
    contextId: '',
    artifacts: [{ artifactId: '', parts }],
  })
  const update = { artifact, append: 'yes', lastChunk: 1 }
  assert.deepEqual(readRemoteEvent({ artifactUpdate: update }), {
    artifactUpdate: {
      taskId: '',
      contextId: '',
      artifact: { artifactId: '', parts },
      append: false,
      lastChunk: false,
    },
  })
})

test('AG-11 a part keeps its media type and its file name, each without the other', () => {
  const files = [
    { raw: 'eA==', mediaType: 'text/plain' },
    { raw: 'eA==', filename: 'x.txt' },
    { url: 'https://a.test/x', mediaType: 'text/plain', filename: 'x.txt' },
    { data: { k: 1 }, metadata: { m: 1 } },
  ]
  assert.deepEqual(readRemoteEvent({ message: { ...said, parts: files } }), { message: { ...said, parts: files } })
})

test('AG-11 an event of an agent keeps all its fields', () => {
  const lists = { extensions: ['e'], referenceTaskIds: ['r'] }
  const full = { ...said, contextId: 'c', taskId: 't', ...lists }
  const asked = { state: 'TASK_STATE_INPUT_REQUIRED', message: full, timestamp: '2026-01-02T03:04:05.678Z' }
  const artifact = { artifactId: 'a', name: 'n', description: 'd', parts, extensions: ['e'] }
  for (const event of [
    { task: { ...task, status: asked, artifacts: [artifact], history: [full], metadata: { k: 1 } } },
    { message: full },
    { statusUpdate: { ...ids, status: asked, metadata: { k: 1 } } },
    { artifactUpdate: { ...ids, artifact, append: true, lastChunk: false } },
    { artifactUpdate: { ...ids, artifact, append: false, lastChunk: true } },
  ])
    assert.deepEqual(readRemoteEvent(event), event)
})

test('AG-11 an empty field of an event counts as absent, because protocol buffers send it so', () => {
  const empty = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: {} }
  assert.deepEqual(readRemoteEvent({ message: { ...said, ...empty } }), { message: said })
  const artifact = { artifactId: 'a', parts, name: '', description: '', extensions: [], metadata: {} }
  const bare = { ...task, contextId: '', status: { ...status, message: null, timestamp: null } }
  const read = readRemoteEvent({ task: { ...bare, artifacts: [artifact], history: [], metadata: {} } })
  assert.deepEqual(read, { task: { ...task, contextId: '', artifacts: [{ artifactId: 'a', parts }] } })
  assert.deepEqual(readRemoteEvent({ task: { ...bare, artifacts: [] } }), { task: { ...task, contextId: '' } })
})
