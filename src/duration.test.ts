/** Go's own examples, a model built from terms, and a round trip through formatDuration. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, formatWait, parseDuration } from './duration.ts'

const UNIT_NS: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  '\u00b5s': 1_000n,
  '\u03bcs': 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}

test('EX-4 a timeout is parsed in Go duration syntax', () => {
  const table: Record<string, number> = {
    '300ms': 300,
    '1.5h': 5_400_000,
    '2m30s': 150_000,
    '60s': 60_000,
    '0': 0,
    '+0': 0,
    '-0': 0,
    '0s': 0,
    '.5s': 500,
    '1.s': 1000,
    '-1.5h': -5_400_000,
    '+5s': 5000,
    '1ns': 1e-6,
    '3us': 0.003,
    '12\u00b5s': 0.012,
    '12\u03bcs': 0.012,
    '1h1m1s1ms': 3_661_001,
    '3s1h': 3_603_000,
    '0.3333333333333333333h': 1_200_000,
    '0.100000000000000000000h': 360_000,
    '9007199254.5s': 9_007_199_254_500,
  }
  for (const [text, ms] of Object.entries(table)) assert.equal(parseDuration(text), ms, text)
})

test('EX-4 a text that is not a Go duration is refused', () => {
  const bad = [
    '',
    '5',
    '1,5h',
    '-',
    '+',
    's',
    '.',
    '.s',
    '-.s',
    '1',
    '3000',
    '1 s',
    ' 1s',
    '1s ',
    '1d',
    '1H',
    '1e3s',
    'NaN',
    '--1s',
    '1s-1s',
    '1.2.3s',
    '0x1s',
    '1s1',
  ]
  for (const text of bad) assert.equal(parseDuration(text), undefined, text)
})

test('EX-4 a duration beyond 64 bits of nanoseconds is refused', () => {
  assert.equal(parseDuration('9223372036854775807ns'), Number('9223372036854.775807'))
  assert.equal(parseDuration('9223372036854775808ns'), undefined)
  assert.equal(parseDuration('-9223372036854775808ns'), Number('-9223372036854.775808'))
  assert.equal(parseDuration('-9223372036854775809ns'), undefined)
  assert.equal(parseDuration('2562047h47m16.854775808s'), undefined)
  assert.equal(parseDuration('3000000h'), undefined)
  assert.equal(parseDuration(`${'0'.repeat(127)}1s`), undefined)
})

test('a duration written as terms is the sum of its terms', () => {
  const term = fc.record({ count: fc.nat(1_000_000), unit: fc.constantFrom(...Object.keys(UNIT_NS)) })
  const terms = fc.array(term, { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(fc.constantFrom('', '+', '-'), terms, (sign, list) => {
      const text = sign + list.map(({ count, unit }) => `${count}${unit}`).join('')
      const sumNs = list.reduce((sum, { count, unit }) => sum + BigInt(count) * (UNIT_NS[unit] as bigint), 0n)
      const expected = sumNs > 2n ** 63n - 1n ? undefined : Number(sumNs) / 1e6
      const parsed = parseDuration(text)
      if (expected === undefined) return assert.equal(parsed, undefined)
      const signed = sign === '-' ? -expected : expected
      assert.ok(parsed !== undefined && Math.abs(parsed - signed) <= Math.abs(signed) * 1e-15, `${text}: ${parsed}`)
    }),
  )
})

test('durations are formatted as Go formats them', () => {
  const table: [number, string][] = [
    [0, '0s'],
    [-0, '0s'],
    [1e-6, '1ns'],
    [1.1e-3, '1.1\u00b5s'],
    [2.2, '2.2ms'],
    [300, '300ms'],
    [1500, '1.5s'],
    [3300, '3.3s'],
    [90_000, '1m30s'],
    [245_000, '4m5s'],
    [3_600_000, '1h0m0s'],
    [18_367_001, '5h6m7.001s'],
    [-90_000, '-1m30s'],
    [Number.POSITIVE_INFINITY, '2562047h47m16.854s'],
  ]
  for (const [ms, text] of table) assert.equal(formatDuration(ms), text)
})

test('a formatted duration is parsed back: whole milliseconds exactly, fractions to the nanosecond', () => {
  const wholeMs = fc.integer({ min: -9_223_372_036_854, max: 9_223_372_036_854 })
  fc.assert(fc.property(wholeMs, (ms) => assert.equal(parseDuration(formatDuration(ms)), ms === 0 ? 0 : ms)))
  const nanoseconds = fc.integer({ min: -(2 ** 46), max: 2 ** 46 })
  fc.assert(
    fc.property(nanoseconds, (ns) => {
      const read = parseDuration(formatDuration(ns / 1e6))
      assert.equal(Math.round((read as number) * 1e6), ns === 0 ? 0 : ns)
    }),
  )
})

test('any text is parsed or refused, and never throws', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('0', '1', '9', '.', 's', 'm', 'h', '-') })),
      (text) => {
        const ms = parseDuration(text)
        assert.ok(ms === undefined || Number.isFinite(ms))
      },
    ),
  )
})

test('a wait for people is rounded up to seconds, then to minutes', () => {
  const shown = [0, 1, 59_000, 59_001, 60_000, 61_000, 3_540_001, 3_600_000, 12_000_000, 86_400_000].map(formatWait)
  const expected = ['1 s', '1 s', '59 s', '1 min', '1 min', '2 min', '1 h', '1 h', '3 h 20 min', '24 h']
  assert.deepEqual(shown, expected)
})
