/** An envelope is read, stored, restored, hashed and turned into a backend's request, in both versions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { message } from '../../test/generators/protocol-values.ts'
import { MoleculeError } from '../errors.ts'
import type { Message } from './a2a.ts'
import {
  contentHash,
  idempotencyKey,
  readEnvelope,
  restoreEnvelope,
  sendOptions,
  toRequest,
  writeEnvelope,
} from './envelope.ts'
import type { Sender } from './request.ts'
import { messageToV03 } from './v03/v03.ts'

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))
const hello: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
const sender: Sender = { kind: 'person', id: 'p1', name: 'Ana', door: 'http' }

const v10 = (sent: object = hello, rest: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'SendMessage',
  params: { message: sent, ...rest },
})
const v03 = (sent: Message = hello, rest: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: messageToV03(sent), ...rest },
})

test('BK-2 the same message is read from a send of either version', () => {
  fc.assert(
    fc.property(message, (sent) => {
      for (const raw of [v10(sent), v03(sent)].map(plain)) {
        const envelope = readEnvelope(raw)
        assert.deepEqual(envelope.message, plain(sent))
        assert.equal(envelope.version, raw.method === 'SendMessage' ? '1.0' : '0.3')
        assert.equal(envelope.method, raw.method)
        assert.equal(envelope.raw, raw)
      }
    }),
  )
})

test('a restored envelope equals the one that was stored', () => {
  fc.assert(
    fc.property(message, fc.boolean(), (sent, old) => {
      const envelope = readEnvelope(plain(old ? v03(sent) : v10(sent)))
      assert.deepEqual(restoreEnvelope(writeEnvelope(envelope)), envelope)
    }),
  )
})

test('streaming sends are envelopes too, other methods are not', () => {
  assert.equal(readEnvelope({ ...v03(), method: 'message/stream' }).version, '0.3')
  assert.equal(readEnvelope({ ...v10(), method: 'SendStreamingMessage' }).version, '1.0')
  for (const method of ['GetTask', 'tasks/get', 'nonsense']) {
    assert.throws(() => readEnvelope({ ...v10(), method }), /method does not send a message/)
  }
})

test('an invalid send is refused with the place of the problem', () => {
  const table: [unknown, string][] = [
    [null, 'the request'],
    [{ ...v10(), jsonrpc: 2 }, 'jsonrpc'],
    [{ ...v10(), params: [] }, 'params'],
    [v10({ ...hello, messageId: '' }), 'params.message.messageId'],
    [v10({ ...hello, parts: [] }), 'params.message.parts'],
    [v10({ ...hello, parts: [{ text: 'a' }, { raw: '!' }] }), 'params.message.parts[1].raw'],
    [v10({ ...hello, role: 'user' }), 'params.message.role'],
    [v10(hello, { metadata: { idempotency_key: 5 } }), 'params.metadata.idempotency_key'],
    [v10({ ...hello, parts: [{ data: JSON.parse('['.repeat(64) + ']'.repeat(64)) }] }), 'the request'],
  ]
  for (const [raw, path] of table) {
    assert.throws(
      () => readEnvelope(raw),
      (thrown) => {
        assert.ok(thrown instanceof MoleculeError)
        assert.equal(thrown.code, 'invalid_request')
        assert.equal(thrown.details['path'], path)
        assert.ok(thrown.message.startsWith(path))
        return true
      },
    )
  }
})

test('an empty or null id counts as absent', () => {
  const { message: read } = readEnvelope(v10({ ...hello, contextId: '', taskId: null, metadata: null }))
  assert.deepEqual(read, hello)
})

test('BK-1 URLs and credentials of push notifications are removed from the envelope in every spelling', () => {
  const secrets = { token: 'SECRET', authentication: { scheme: 'Bearer', credentials: 'SECRET' }, extra: 'SECRET' }
  const config = { id: 'c1', url: 'https://example.org/hook?signature=SECRET', ...secrets }
  const names = ['taskPushNotificationConfig', 'pushNotificationConfig', 'task_push_notification_config']
  for (const name of names) {
    for (const make of [v10, v03]) {
      const raw = plain(
        make(hello, { configuration: { historyLength: 3, [name]: { ...config, authentication: null } } }),
      )
      const before = plain(raw)
      const envelope = readEnvelope(raw)
      assert.ok(!writeEnvelope(envelope).includes('SECRET'), name)
      assert.deepEqual(raw, before, 'what the door holds is not changed')
      const { configuration } = (envelope.raw as { params: { configuration: Record<string, unknown> } }).params
      assert.deepEqual(configuration, { historyLength: 3, [name]: { id: 'c1' } })
    }
  }
  const odd = readEnvelope(v10(hello, { configuration: { push_notification_config: 'SECRET' } }))
  assert.ok(!writeEnvelope(odd).includes('SECRET'))
})

test('BK-1 a request has the whole message and the envelope that it arrived in', () => {
  const sent: Message = {
    ...hello,
    parts: [{ text: 'hi' }, { url: 'https://a', mediaType: 'text/csv' }, { data: { a: 1 } }],
  }
  const envelope = readEnvelope(v03(sent))
  const request = toRequest({
    workspaceId: 'ws_1',
    callerId: 'ws_2',
    taskId: 't1',
    contextId: 'c1',
    idempotencyKey: 'k1',
    sender,
    envelope,
  })
  assert.deepEqual(request, {
    workspace_id: 'ws_1',
    caller_id: 'ws_2',
    message_id: 'm1',
    idempotency_key: 'k1',
    task_id: 't1',
    context_id: 'c1',
    parts: [
      { type: 'text', text: 'hi' },
      { type: 'file', uri: 'https://a', mime_type: 'text/csv' },
      { type: 'data', data: { a: 1 } },
    ],
    method: 'message/send',
    sender,
    raw: v03(sent),
  })
})

test('BK-10 a request has the sender that the door set', () => {
  const claimed = { ...hello, metadata: { sender: { kind: 'agent', name: 'the owner' } } }
  const origin = { workspaceId: 'w', callerId: '', taskId: 't', contextId: 'c', idempotencyKey: 'k', sender }
  const request = toRequest({ ...origin, envelope: readEnvelope(v10(claimed)) })
  assert.deepEqual(request.sender, sender)
  assert.equal(request.caller_id, '')
})

test('the content hash covers only role and parts, in either version and any key order', () => {
  const first = contentHash(hello)
  assert.match(first, /^[0-9a-f]{64}$/)
  assert.equal(contentHash({ ...hello, messageId: 'm2', contextId: 'c', metadata: { a: 1 } }), first)
  assert.notEqual(contentHash({ ...hello, role: 'ROLE_AGENT' }), first)
  assert.notEqual(contentHash({ ...hello, parts: [{ text: 'hello' }, { text: '' }] }), first)
  assert.equal(
    contentHash({ ...hello, parts: [{ data: { a: 1, b: [2] }, filename: 'f' }] }),
    contentHash({ ...hello, parts: [{ filename: 'f', data: { b: [2], a: 1 } }] }),
  )
  fc.assert(
    fc.property(message, (sent) => {
      const hashes = [v10(sent), v03(sent)].map((raw) => contentHash(readEnvelope(plain(raw)).message))
      assert.equal(hashes[0], hashes[1])
    }),
  )
})

test('a send blocks by default in both versions, and each version can turn it off', () => {
  const options = (raw: unknown) => sendOptions(readEnvelope(raw))
  assert.deepEqual(options(v10()), { blocking: true })
  assert.deepEqual(options(v03()), { blocking: true })
  assert.equal(options(v10(hello, { configuration: { returnImmediately: true } })).blocking, false)
  assert.equal(options(v03(hello, { configuration: { blocking: false } })).blocking, false)
  assert.equal(options(v10(hello, { configuration: { blocking: false } })).blocking, true)
  assert.equal(options(v03(hello, { configuration: { returnImmediately: true } })).blocking, true)
  const full = { historyLength: 0, acceptedOutputModes: ['text/plain'] }
  assert.deepEqual(options(v10(hello, { configuration: full })), { blocking: true, ...full })
  assert.deepEqual(options(v10(hello, { configuration: { historyLength: null, acceptedOutputModes: null } })), {
    blocking: true,
  })
})

test('the idempotency key is read from three places, in order', () => {
  const key = (sent: object, rest: object = {}) => idempotencyKey(readEnvelope(v10({ ...hello, ...sent }, rest)))
  const inMessage = { idempotency_key: 'c' }
  const inMetadata = { metadata: { idempotency_key: 'b' } }
  assert.equal(key({ ...inMessage, ...inMetadata }, { metadata: { idempotency_key: 'a' } }), 'a')
  assert.equal(key({ ...inMessage, ...inMetadata }, { metadata: { idempotency_key: '' } }), 'b')
  assert.equal(key(inMessage), 'c')
  assert.equal(key({}), undefined)
  assert.equal(key({ metadata: {} }, { metadata: null }), undefined)
})

test('any body is an envelope that can be stored, or invalid_request', () => {
  const near = fc.record(
    {
      jsonrpc: fc.constant('2.0'),
      method: fc.constantFrom('SendMessage', 'message/send'),
      params: fc.record(
        {
          message: fc.oneof(message, message.map(messageToV03), fc.jsonValue()),
          metadata: fc.jsonValue(),
          configuration: fc.jsonValue(),
        },
        { requiredKeys: ['message'] },
      ),
    },
    { requiredKeys: ['jsonrpc', 'method', 'params'] },
  )
  fc.assert(
    fc.property(fc.oneof(near, fc.jsonValue()), (raw) => {
      try {
        const envelope = readEnvelope(plain(raw))
        assert.deepEqual(restoreEnvelope(writeEnvelope(envelope)), envelope)
        sendOptions(envelope)
        idempotencyKey(envelope)
      } catch (thrown) {
        assert.ok(thrown instanceof MoleculeError && thrown.code === 'invalid_request', String(thrown))
      }
    }),
    { numRuns: 500 },
  )
})
