import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backendOptions } from './backend-options.ts'

test('EX-4 a timeout without a unit is in seconds, and 0 means none', () => {
  assert.deepEqual(backendOptions({ timeout: 5, max_time: 0.5 }), { timeout: '5s', max_time: '0.5s' })
  assert.deepEqual(backendOptions({ timeout: 0 }), { timeout: 'none' })
  assert.deepEqual(backendOptions({ timeout: '0s' }), { timeout: '0s' })
})

test('BK-5 every value becomes a string', () => {
  const config = { a: true, b: 7, c: ['x', 'y'], d: null, e: 'text' }
  assert.deepEqual(backendOptions(config), { a: 'true', b: '7', c: '["x","y"]', d: '', e: 'text' })
})
