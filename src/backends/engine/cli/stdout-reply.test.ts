import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createDeltaReader, replyPart } from './stdout-reply.ts'

/** Text with one to four bytes a character, cut at any byte into chunks. */
const cutText = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 60 }), fc.array(fc.nat({ max: 6 }), { maxLength: 80 }))
  .map(([text, sizes]) => ({ text, chunks: cut(Buffer.from(text), sizes) }))

test('EX-3 text comes back byte for byte, and its deltas joined are the reply, wherever the chunks were cut', () => {
  fc.assert(
    fc.property(cutText, ({ text, chunks }) => {
      assert.deepEqual(replyPart(Buffer.concat(chunks)), { text })
      const read = createDeltaReader()
      const deltas = chunks.map((chunk) => read(chunk))
      assert.equal(deltas.map((event) => (event.type === 'text' ? event.delta : '')).join(''), text)
    }),
  )
})

test('EX-3 bytes that are not UTF-8 come back as a file of the same bytes, and no garbage is streamed', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const part = replyPart(bytes)
      const back = part.text === undefined ? Buffer.from(part.raw ?? '', 'base64') : Buffer.from(part.text)
      assert.deepEqual(back, Buffer.from(bytes))
      assert.equal(part.mediaType, part.text === undefined ? 'application/octet-stream' : undefined)
      const read = createDeltaReader()
      for (const byte of bytes) {
        const event = read(Uint8Array.of(byte))
        assert.ok(event.type === 'activity' || !event.delta.includes('\ufffd'))
      }
    }),
  )
})

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...chunks, bytes.subarray(at)]
}
