import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPlace, writePlace } from './route.ts'

test('a place survives the way into the address bar and back', () => {
  for (const place of [
    {},
    { workspaceId: 'ws_1' },
    { workspaceId: 'a b', tab: 'chat' },
    { workspaceId: 'a', tab: 'chat', item: 'c/1' },
    { workspaceId: 'a', tab: 'chat', item: 'c', at: 'm?1' },
    { workspaceId: 'a', tab: 'config', view: 'new' },
    { workspaceId: 'a', tab: 'chat', item: 'c?', at: 'm', view: 'needs' },
    { view: 'needs' },
  ] as const) {
    assert.deepEqual(readPlace(writePlace(place)), place)
  }
  assert.deepEqual(readPlace(''), {})
  assert.deepEqual(readPlace('#/w/'), {})
})

test('CV-14 an address that cannot be decoded, or names no view, is the canvas with a sentence', () => {
  for (const hash of [
    '#/%',
    '#/w/100%',
    '#/w/ws_1/%E0%A4%A',
    '#/w/ws_1/chat/%',
    '#/nothing',
    '#/constructor',
    '#/w/ws_1/chat?nothing',
  ]) {
    assert.deepEqual(readPlace(hash), { isUnknown: true }, hash)
  }
})
