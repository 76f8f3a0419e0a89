import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signWebhook } from './signature.ts'

test('PL-19 a signature has the time in seconds and the HMAC-SHA256 of time, dot and body in hex', () => {
  // From: printf '1767225600.{"a":"ü"}' | openssl dgst -sha256 -hmac key
  const expected = 't=1767225600,v1=f01a05a5176f797f6712f39ef1ac5556783b6002790e862cf7dd82712527f601'
  assert.equal(signWebhook('{"a":"ü"}', { secret: 'key', nowMs: 1_767_225_600_999 }), expected)
})
