import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCapture, createTail } from './output.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 })
const limit = fc.nat({ max: 100 })

test('a capture keeps and returns the beginning up to its limit, and reports when there was more', () => {
  fc.assert(
    fc.property(chunks, limit, (pushed, bytesMax) => {
      const capture = createCapture(bytesMax)
      const whole = Buffer.concat(pushed)
      const handedOn = Buffer.concat(pushed.map((chunk) => capture.push(chunk)))
      assert.deepEqual(Buffer.from(capture.bytes()), whole.subarray(0, bytesMax))
      assert.deepEqual(handedOn, whole.subarray(0, bytesMax))
      assert.equal(capture.over(), whole.length > bytesMax)
    }),
  )
})

test('a tail keeps the end and reports whether anything was cut', () => {
  fc.assert(
    fc.property(chunks, limit, (pushed, bytesKept) => {
      const tail = createTail(bytesKept)
      const whole = Buffer.concat(pushed)
      for (const chunk of pushed) tail.push(chunk)
      assert.deepEqual(Buffer.from(tail.bytes()), whole.subarray(Math.max(0, whole.length - bytesKept)))
      assert.equal(tail.cut(), whole.length > bytesKept)
    }),
  )
})
