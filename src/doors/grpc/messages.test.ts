import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonInput, SendMessageRequest } from '@a2a-js/sdk'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { MoleculeError } from '../../errors.ts'
import { GRPC_METHODS } from './messages.ts'

test('RE-4 no bytes make a method fail in another way than as an invalid request', () => {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const request = { tenant: 'ws', message, metadata: { a: [1, { b: null }] } }
  const valid = Buffer.from(
    A2AService.sendMessage.requestSerialize(SendMessageRequest.fromJSON(request as unknown as JsonInput)),
  )
  const mutated = fc.tuple(fc.nat(valid.length - 1), fc.nat(255)).map(([at, byte]) => {
    const bytes = Buffer.from(valid)
    bytes[at] = byte
    return bytes
  })
  const bytes = fc.oneof(mutated, fc.uint8Array({ maxLength: 64 }).map(Buffer.from))
  for (const method of Object.values(GRPC_METHODS))
    fc.assert(
      fc.property(bytes, (given) => {
        try {
          assert.equal(typeof method.read(given, 100), 'object')
        } catch (error) {
          assert.equal(error instanceof MoleculeError && error.code, 'invalid_request', String(error))
        }
      }),
    )
})

test('bytes of another type, and messages nested too deep for the decoder, are invalid requests', () => {
  const { read } = GRPC_METHODS.sendMessage
  // Field 2 of the request is its message, field 5 there a part, field 4 the data of it, fields 6 and 1 are lists.
  const fields = [2, 5, 4, ...Array.from({ length: 30_000 }, (_, n) => (n % 2 === 0 ? 6 : 1))]
  const heads: Uint8Array[] = []
  for (let length = 0; fields.length > 0; length += heads[0]?.length ?? 0)
    heads.unshift(
      new BinaryWriter()
        .uint32(((fields.pop() ?? 0) << 3) | 2)
        .uint32(length)
        .finish(),
    )
  const bytes = Buffer.concat(heads)
  for (const wrong of [bytes, Buffer.from('not a message'), Buffer.from([0x12, 0x7f])])
    assert.throws(() => read(wrong, 10_000), { code: 'invalid_request', message: /cannot be decoded/ })
})
