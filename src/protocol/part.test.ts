/** Parts in every form that callers use, and the translation to and from the backends' form. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { part } from '../../test/generators/protocol-values.ts'
import { MoleculeError } from '../errors.ts'
import type { Part } from './a2a.ts'
import { fromRequestPart, readAgentPart, readPart, toRequestPart } from './part.ts'
import { partToV03 } from './v03/v03-part.ts'

const PATH = 'params.message.parts[0]'

/** Generated objects may lack a prototype, so their JSON is compared. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))

test('BK-2 a part is read by type, by kind and in 1.0 form', () => {
  const table: [unknown, Part][] = [
    [{ text: 'a' }, { text: 'a' }],
    [{ kind: 'text', text: 'a' }, { text: 'a' }],
    [{ type: 'text', text: 'a' }, { text: 'a' }],
    [{ type: 'text', kind: 'text', text: '' }, { text: '' }],
    [
      { raw: 'QQ==', mediaType: 'image/png', filename: 'a.png' },
      { raw: 'QQ==', mediaType: 'image/png', filename: 'a.png' },
    ],
    [
      { kind: 'file', file: { bytes: 'QQ==', mimeType: 'image/png', name: 'a.png' }, metadata: { a: 1 } },
      { raw: 'QQ==', mediaType: 'image/png', filename: 'a.png', metadata: { a: 1 } },
    ],
    [{ kind: 'file', file: { uri: 'https://a/b' } }, { url: 'https://a/b' }],
    [
      { type: 'file', uri: 'https://a/b', mime_type: 'text/csv' },
      { url: 'https://a/b', mediaType: 'text/csv' },
    ],
    [
      { type: 'file', bytes: 'QQ', filename: 'a' },
      { raw: 'QQ', filename: 'a' },
    ],
    [{ kind: 'data', data: { a: 1 } }, { data: { a: 1 } }],
    [{ type: 'data', data: { a: 1 } }, { data: { a: 1 } }],
    [{ type: 'data', data: null }, { data: null }],
    [{ data: null }, { data: null }],
    [{ kind: 'data', data: { value: 5 }, metadata: { data_part_compat: true } }, { data: 5 }],
  ]
  for (const [given, read] of table) assert.deepEqual(readPart(given, PATH), read, JSON.stringify(given))
})

test('null and unknown members count as absent', () => {
  const given = { text: 'a', raw: null, url: null, data: null, mediaType: null, metadata: null, kind: null, novel: 1 }
  assert.deepEqual(readPart(given, PATH), { text: 'a' })
})

test('an invalid part is refused with the place and the reason', () => {
  const table: [unknown, RegExp][] = [
    ['text', /^params\.message\.parts\[0\] must be an object/],
    [null, /must be an object/],
    [[], /must be an object/],
    [{}, /has none of text, raw, url, data/],
    [{ text: 'a', url: 'b' }, /has more than one of/],
    [{ text: 5 }, /parts\[0\]\.text must be a string/],
    [{ raw: 'not base64!' }, /parts\[0\]\.raw must be base64/],
    [{ raw: 'QQQQQ' }, /must be base64/],
    [{ raw: 'QQ=' }, /must be base64/],
    [{ url: '' }, /must not be empty/],
    [{ text: 'a', mediaType: 5 }, /media type must be a string/],
    [{ text: 'a', filename: {} }, /file name must be a string/],
    [{ text: 'a', filename: 'a'.repeat(1001) }, /file name must have at most 1000 characters/],
    [{ text: 'a', metadata: 'b' }, /metadata must be an object/],
    [{ kind: 'text' }, /has none of/],
    [{ kind: 'text', data: {} }, /is a text part without text/],
    [{ kind: 'video', text: 'a' }, /must be of kind text, file or data/],
    [{ kind: 'toString', text: 'a' }, /must be of kind/],
    [{ kind: 'text', type: 'file', text: 'a' }, /a kind and a type that differ/],
    [{ kind: 'file', file: 'a' }, /parts\[0\]\.file must be an object/],
    [{ kind: 'file', file: {} }, /parts\[0\]\.file has none of/],
    [{ kind: 'file', file: { bytes: 'QQ==', uri: 'a' } }, /parts\[0\]\.file has more than one of/],
    [{ type: 'file', text: 'a' }, /is a file part without bytes or uri/],
    [{ type: 'text', text: 'a', uri: 'b' }, /has more than one of/],
  ]
  for (const [given, reason] of table) {
    assert.throws(
      () => readPart(given, PATH),
      (thrown) => {
        assert.ok(thrown instanceof MoleculeError && thrown.code === 'invalid_request')
        assert.match(thrown.message, reason)
        assert.ok(String(thrown.details['path']).startsWith(PATH))
        return true
      },
      JSON.stringify(given),
    )
  }
})

test('BK-2 every part reads the same in the forms of 1.0, of 0.3 and of backends', () => {
  fc.assert(
    fc.property(part, (value) => {
      assert.deepEqual(plain(readPart(value, PATH)), plain(value))
      assert.deepEqual(plain(readPart(partToV03(value), PATH)), plain(value))
      assert.deepEqual(plain(fromRequestPart(toRequestPart(value))), plain(value))
    }),
    { numRuns: 500 },
  )
})

test('BK-1 a part in the form of backends has lost nothing', () => {
  fc.assert(
    fc.property(part.map(toRequestPart), (handed) => {
      assert.deepEqual(plain(toRequestPart(fromRequestPart(handed))), plain(handed))
    }),
  )
  const rest = { mime_type: 'text/plain', filename: 'a.txt', metadata: { a: 1 } }
  const named = { mediaType: 'text/plain', filename: 'a.txt', metadata: { a: 1 } }
  assert.deepEqual(toRequestPart({ text: 'a', ...named }), { type: 'text', text: 'a', ...rest })
  assert.deepEqual(toRequestPart({ raw: 'QQ==', ...named }), { type: 'file', bytes: 'QQ==', ...rest })
  assert.deepEqual(toRequestPart({ url: 'https://a', ...named }), { type: 'file', uri: 'https://a', ...rest })
  assert.deepEqual(toRequestPart({ data: [1], ...named }), { type: 'data', data: [1], ...rest })
})

test('any value is read, or refused as invalid_request', () => {
  const member = fc.constantFrom('kind', 'type', 'text', 'raw', 'url', 'data', 'file', 'bytes', 'uri', 'metadata')
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('text', 'file', 'data', 'QQ=='))
  const anything = fc.oneof(fc.jsonValue(), fc.dictionary(member, value))
  fc.assert(
    fc.property(anything, (given) => {
      try {
        const { text, raw, url, data } = readPart(given, PATH)
        assert.equal([text, raw, url, data].filter((content) => content !== undefined).length, 1)
      } catch (thrown) {
        assert.ok(thrown instanceof MoleculeError && thrown.code === 'invalid_request', String(thrown))
      }
    }),
    { numRuns: 1000 },
  )
})

test('PL-30 a file of an agent loses the beginning of a long name, and characters that hide others', () => {
  const given = { text: 'a', filename: `\u202e${'x'.repeat(2000)}\u0000.pdf` }
  assert.equal(readAgentPart(given, 'part').filename, `${'x'.repeat(995)}.pdf`)
  assert.equal(readPart({ text: 'a', filename: 'a\u2067b\n.txt' }, 'part').filename, 'ab.txt')
})
