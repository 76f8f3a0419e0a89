import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { booleanOption, createOptions, unknownOptionKeys } from './options.ts'

test('BK-5 get gives the value, or the fallback if it is missing or empty', () => {
  const options = createOptions({ model: 'large', empty: '' })
  assert.equal(options.get('model', 'small'), 'large')
  assert.equal(options.get('empty', 'small'), 'small')
  assert.equal(options.get('missing', 'small'), 'small')
  assert.equal(options.get('constructor', 'small'), 'small')
  assert.deepEqual(options.keys, ['model', 'empty'])
})

test('BK-5 require gives the value, or fails with the name of a key that is missing or empty', () => {
  const options = createOptions({ cmd: 'cat', empty: '' })
  assert.equal(options.require('cmd'), 'cat')
  for (const key of ['empty', 'missing', 'toString']) {
    assert.throws(() => options.require(key), { code: 'bad_config', message: `backend option "${key}" is required` })
  }
})

test('BK-5 get and require agree for any key and value', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), fc.string(), fc.string(), (values, key, fallback) => {
      const value = Object.hasOwn(values, key) ? values[key] : ''
      const options = createOptions(values)
      assert.equal(options.get(key, fallback), value === '' ? fallback : value)
      if (value === '') assert.throws(() => options.require(key), { code: 'bad_config' })
      else assert.equal(options.require(key), value)
    }),
  )
})

test('BK-5 the keys that a backend does not know are listed, sorted', () => {
  const definition = { options: { cmd: 'the command', timeout: 'how long' } }
  assert.deepEqual(unknownOptionKeys(definition, { zeal: '1', cmd: 'cat', constructor: '2' }), ['constructor', 'zeal'])
  assert.deepEqual(unknownOptionKeys(definition, { timeout: '1s' }), [])
})

test('a boolean option is true or false in upper or lower case, and a typo is refused with key and value', () => {
  const read = (value: string) => booleanOption(createOptions({ stream: value }), 'stream', false)
  assert.deepEqual(['true', 'TRUE', 'false', ''].map(read), [true, true, false, false])
  assert.equal(booleanOption(createOptions({}), 'stream', true), true)
  assert.throws(() => read('ture'), {
    code: 'bad_config',
    message: 'backend option "stream": "ture" is not true or false',
  })
})
