import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closestName, lastPart, shortPath, splitPath } from './folders.ts'

test('PL-11 parts of a path', () => {
  assert.equal(lastPart('/home/ada/shop/'), 'shop')
  assert.equal(lastPart('/'), '')
  assert.deepEqual(splitPath('/home/ada/shopp/'), { parent: '/home/ada', name: 'shopp' })
  assert.deepEqual(splitPath('~/shop'), { parent: '~', name: 'shop' })
  assert.deepEqual(splitPath('/tmp'), { parent: '/', name: 'tmp' })
  assert.equal(splitPath('/'), undefined)
  assert.equal(shortPath('/home/ada/shop', '/home/ada'), '~/shop')
  assert.equal(shortPath('/home/adam', '/home/ada'), '/home/adam')
})

test('PL-11 a misspelled folder has a suggestion, another name has none', () => {
  assert.equal(closestName('shopp', ['docs', 'shop', 'shops']), 'shop')
  assert.equal(closestName('Shop', ['shop']), 'shop')
  assert.equal(closestName('billing', ['shop', 'docs']), undefined)
  assert.equal(closestName('a', ['b']), undefined)
})
