/** Equality and the canonical text of JSON values, compared with JSON.stringify. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalJson, jsonEqual, parseJsonObject } from './json.ts'

const json = fc.jsonValue({ maxDepth: 4 })

/** The same value with its keys in the opposite order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, turned(member)]),
  )
}

test('the canonical text parses to the same value', () => {
  fc.assert(fc.property(json, (value) => assert.ok(jsonEqual(JSON.parse(canonicalJson(value)), value))))
})

test('the canonical text does not depend on the order of keys', () => {
  fc.assert(fc.property(json, (value) => assert.equal(canonicalJson(turned(value)), canonicalJson(value))))
  assert.equal(canonicalJson({ b: [1, { d: 'x', c: null }], a: undefined }), '{"b":[1,{"c":null,"d":"x"}]}')
})

test('two values are equal exactly when their canonical texts are', () => {
  fc.assert(
    fc.property(json, json, (left, right) => {
      assert.ok(jsonEqual(left, turned(left)))
      assert.equal(jsonEqual(left, right), canonicalJson(left) === canonicalJson(right))
    }),
  )
  assert.ok(!jsonEqual({ a: 1 }, { b: 1 }))
  assert.ok(!jsonEqual([1], [1, 2]))
  assert.ok(!jsonEqual([], {}))
  assert.ok(!jsonEqual(JSON.parse('{"__proto__":1}'), { toString: 1 }))
})

test('only the text of a JSON object gives an object', () => {
  for (const text of ['', 'Warning: x', '[1]', '7', 'null', '{', '{"a":'])
    assert.equal(parseJsonObject(text), undefined)
  assert.deepEqual(parseJsonObject('  {"a":1}'), { a: 1 })
})
