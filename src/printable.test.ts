import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { printable, printableName, withoutControls } from './printable.ts'

const OSC_52 = '\u001b]52;c;ZXZpbA==\u0007'

test('PL-30 a command shows its control and direction characters as escapes', () => {
  assert.equal(printable('rm \u202etxt.a\u202c # \u2066x'), 'rm \\u202etxt.a\\u202c # \\u2066x')
  assert.equal(printable(OSC_52), '\\x1b]52;c;ZXZpbA==\\x07')
  assert.equal(printable('a\u009b2Jb\u007f\u0000c\rd'), 'a\\x9b2Jb\\x7f\\x00c\\x0dd')
  assert.equal(printable('a\r\n\tb\nc'), 'a\r\n\tb\nc')
  assert.equal(printable('r\u200bm\ufeff\u00ad'), 'r\\u200bm\\ufeff\\xad')
  for (const usual of ['git commit -m "Grüße 你好 שלום"', '👨‍👩‍👧 می‌خواهم', '𝒳 🏳️‍🌈']) {
    assert.equal(printable(usual), usual)
  }
})

test('PL-30 a running text loses its control characters and the colours of programs', () => {
  assert.equal(withoutControls('\u001b[31mred\u001b[0m \u001b[2J\u001b[?25lx'), 'red x')
  assert.equal(withoutControls(`a${OSC_52}b\u202ec\rd\r\n`), 'a]52;c;ZXZpbA==bcd\n')
})

test('PL-30 a name is one line of limited length', () => {
  assert.equal(printableName('a\nb\tc\u202e'), 'a b c\\u202e')
  const long = printableName('x'.repeat(100_000))
  assert.equal(long, `${'x'.repeat(200)}…`)
})

test('PL-30 no control or direction character of any text is left', () => {
  const unsafe =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it finds them
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)/
  const pieces = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\u001b[', '\u001b]', '\u202e', '\r', '\n', 'm'),
  )
  fc.assert(
    fc.property(fc.array(pieces), (texts) => {
      const text = texts.join('')
      assert.doesNotMatch(printable(text), unsafe)
      assert.doesNotMatch(withoutControls(text), unsafe)
      assert.equal(printable(printable(text)), printable(text))
    }),
  )
})
