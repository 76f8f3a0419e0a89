import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coversPrincipal, topPrincipal } from './principals.ts'

test('PL-12 a workspace sees what its conversations sent, and a conversation only its own', () => {
  assert.equal(coversPrincipal('ws:A', 'ws:A'), true)
  assert.equal(coversPrincipal('ws:A', 'ws:A/c1'), true)
  assert.equal(coversPrincipal('ws:A/c1', 'ws:A'), false)
  assert.equal(coversPrincipal('ws:A', 'ws:AB'), false)
  assert.deepEqual([topPrincipal('ws:A/c1/x'), topPrincipal('people')], ['ws:A', 'people'])
})
