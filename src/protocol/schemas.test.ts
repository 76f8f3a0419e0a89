/** Every limit of the schemas from both sides, unknown fields, and the check of the depth. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { MoleculeError } from '../errors.ts'
import * as schemas from './schemas.ts'

const { parseInput, jsonDepthWithin, sendMessageParamsSchema, messageSendParamsSchema } = schemas

const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] }
const send = (change: object, configuration: unknown = undefined) => ({
  message: { ...message, ...change },
  configuration,
})

function refusal(schema: z.ZodType, value: unknown): string {
  try {
    parseInput(schema, value, 'params')
  } catch (thrown) {
    assert.ok(thrown instanceof MoleculeError && thrown.code === 'invalid_request')
    assert.ok(thrown.message.startsWith(String(thrown.details['path'])))
    return thrown.message
  }
  return 'taken'
}

test('a send is accepted at its limits and refused beyond them, with the place of the problem', () => {
  const long = 'x'.repeat(256)
  const taken = [
    send({ messageId: long, contextId: long, taskId: long, parts: Array(1000).fill({ text: 'a' }) }),
    send({}, { historyLength: 0 }),
    send({}, { historyLength: 1_000_000, returnImmediately: true, acceptedOutputModes: ['text/plain'] }),
    send({ contextId: null, taskId: '', metadata: null, extensions: null, novel: { deep: [] } }, null),
    send({}, { taskPushNotificationConfig: { url: 'https://a', token: 't', authentication: { scheme: 'Bearer' } } }),
  ]
  for (const value of taken) assert.equal(refusal(sendMessageParamsSchema, value), 'taken')
  const refused: [unknown, string][] = [
    [undefined, 'params must be an object'],
    [{}, 'params.message must be an object'],
    [send({ messageId: undefined }), 'params.message.messageId must be a string'],
    [send({ messageId: '' }), 'params.message.messageId must not be empty'],
    [send({ messageId: `${long}x` }), 'params.message.messageId must have at most 256 characters'],
    [send({ contextId: `${long}x` }), 'params.message.contextId must have at most 256 characters'],
    [send({ taskId: 5 }), 'params.message.taskId must be a string'],
    [send({ role: 'user' }), 'params.message.role must be "ROLE_USER" or "ROLE_AGENT"'],
    [send({ parts: [] }), 'params.message.parts must not be empty'],
    [send({ parts: 'a' }), 'params.message.parts must be an array'],
    [send({ parts: Array(1001).fill({ text: 'a' }) }), 'params.message.parts must have at most 1000 entries'],
    [send({ parts: [{}, 5] }), 'params.message.parts[1] must be an object'],
    [send({ metadata: [] }), 'params.message.metadata must be an object'],
    [send({ metadata: { idempotency_key: 5 } }), 'params.message.metadata.idempotency_key must be a string'],
    [send({ extensions: [1] }), 'params.message.extensions[0] must be a string'],
    [send({ referenceTaskIds: Array(101).fill('a') }), 'params.message.referenceTaskIds must have at most 100 entries'],
    [send({}, { historyLength: -1 }), 'params.configuration.historyLength must not be negative'],
    [send({}, { historyLength: 1.5 }), 'params.configuration.historyLength must be a whole number'],
    [send({}, { historyLength: 1_000_001 }), 'params.configuration.historyLength must be at most 1000000'],
    [send({}, { returnImmediately: 'yes' }), 'params.configuration.returnImmediately must be true or false'],
    [send({}, 'now'), 'params.configuration must be an object'],
  ]
  for (const [value, reason] of refused) assert.equal(refusal(sendMessageParamsSchema, value), reason)
})

test('a 0.3 send has the roles and the blocking flag of 0.3', () => {
  assert.equal(refusal(messageSendParamsSchema, send({ role: 'user', kind: 'message' }, { blocking: true })), 'taken')
  assert.match(refusal(messageSendParamsSchema, send({})), /role must be "user" or "agent"/)
  const wrong = send({ role: 'user' }, { blocking: 1 })
  assert.equal(refusal(messageSendParamsSchema, wrong), 'params.configuration.blocking must be true or false')
})

test('every method of both versions names a task by its id', () => {
  const read = parseInput(
    schemas.taskIdParamsSchema,
    { id: 't', historyLength: null, metadata: { a: 1 }, tenant: 'x' },
    'params',
  )
  assert.deepEqual(read, { id: 't', historyLength: undefined, metadata: { a: 1 } })
  assert.equal(refusal(schemas.taskIdParamsSchema, { name: 'tasks/t' }), 'params.id must be a string')
  assert.equal(
    refusal(schemas.taskIdParamsSchema, { id: 't', historyLength: -1 }),
    'params.historyLength must not be negative',
  )
})

test('a list of tasks has pages of 1 to 100', () => {
  const all = { contextId: '', status: 'TASK_STATE_UNSPECIFIED', pageToken: '', pageSize: 100, includeArtifacts: true }
  const read = parseInput(
    schemas.listTasksParamsSchema,
    { ...all, statusTimestampAfter: '2026-11-15T10:00:00Z' },
    'params',
  )
  assert.equal(read.contextId, undefined)
  assert.equal(read.status, undefined)
  assert.equal(read.pageToken, undefined)
  assert.equal(read.pageSize, 100)
  assert.equal(read.statusTimestampAfter, '2026-11-15T10:00:00Z')
  assert.equal(refusal(schemas.listTasksParamsSchema, {}), 'taken')
  assert.equal(refusal(schemas.listTasksParamsSchema, { pageSize: 0 }), 'params.pageSize must be at least 1')
  assert.equal(refusal(schemas.listTasksParamsSchema, { pageSize: 101 }), 'params.pageSize must be at most 100')
  assert.equal(refusal(schemas.listTasksParamsSchema, { status: 'done' }), 'params.status must be a task state')
  assert.match(refusal(schemas.listTasksParamsSchema, { statusTimestampAfter: 'now' }), /must be an ISO 8601 time/)
})

test('every schema can be shown in an OpenAPI document', () => {
  for (const schema of Object.values(schemas)) {
    if (schema instanceof z.ZodType) assert.equal(z.toJSONSchema(schema, { io: 'input' }).type, 'object')
  }
})

test('depth counts objects and arrays, and no depth overflows the stack', () => {
  assert.ok(jsonDepthWithin('a', 0))
  assert.ok(!jsonDepthWithin([], 0))
  assert.ok(jsonDepthWithin([{ a: [] }], 3))
  assert.ok(!jsonDepthWithin([{ a: [] }], 2))
  const levels = 200_000
  const deep: unknown = JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  assert.ok(!jsonDepthWithin(deep, schemas.JSON_DEPTH_MAX))
  assert.ok(jsonDepthWithin(deep, levels))
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat(6), (value, max) => {
      assert.equal(jsonDepthWithin(value, max), depthOf(value) <= max)
    }),
  )
})

test('RE-4 an object whose length cannot be compared is refused like any other wrong value', () => {
  const sly = { length: { toString: 0 } }
  assert.match(refusal(sendMessageParamsSchema, send({ messageId: sly })), /must/)
  assert.match(refusal(sendMessageParamsSchema, send({ parts: sly })), /must/)
})
