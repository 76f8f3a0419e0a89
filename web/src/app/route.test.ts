import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPlace, writePlace } from './route.ts'

test('a place survives the way into the address bar and back', () => {
  for (const place of [
    {},
    { workspaceId: 'ws_1' },
    { workspaceId: 'a b', tab: 'chat' },
    { workspaceId: 'a', tab: 'chat', item: 'c/1' },
    { view: 'needs' },
  ]) {
    assert.deepEqual(readPlace(writePlace(place)), place)
  }
  assert.deepEqual(readPlace(''), {})
  assert.deepEqual(readPlace('#/w/'), {})
})
