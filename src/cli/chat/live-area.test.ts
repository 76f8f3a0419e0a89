import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as drawn } from 'node:timers/promises'
import { createTerminalScreen } from '../../../test/harness/clients/terminal-screen.ts'
import { createLiveArea } from './live-area.ts'

const COLUMNS = 10
const ROWS = 4

function open() {
  const screen = createTerminalScreen({ columns: COLUMNS, rows: ROWS })
  const live = createLiveArea({ write: (text) => screen.write(text.replaceAll('\n', '\r\n')), columns: () => COLUMNS })
  return { live, shown: screen.text }
}

test('CL-6 a live line stays below a text that grows in the middle of its line', async () => {
  const { live, shown } = open()
  live.set(['works 1 s'])
  assert.equal(shown(), '\nworks 1 s')
  live.write('one ')
  live.write('two\nth')
  live.set(['works 2 s'])
  assert.equal(shown(), 'one two\nth\nworks 2 s')
  live.write('ree')
  await drawn()
  assert.equal(shown(), 'one two\nthree\nworks 2 s')
  live.set([])
  assert.equal(shown(), 'one two\nthree')
})

test('CL-6 at the last row the text scrolls and nothing of it is lost', async () => {
  const { live, shown } = open()
  live.write('a\nb\nc\nd')
  live.set(['works', 'you'])
  assert.equal(shown(), 'a\nb\nc\nd\nworks\nyou')
  live.write('e\nf')
  live.set(['works'])
  assert.equal(shown(), 'a\nb\nc\nde\nf\nworks')
  live.write('g\nh\ni\nj')
  await drawn()
  live.set([])
  live.write('k')
  assert.equal(shown(), 'a\nb\nc\nde\nfg\nh\ni\njk')
})

test('CL-6 a full row, wide characters and a long live line do not break the text', async () => {
  const { live, shown } = open()
  live.set(['a live line that is too long'])
  live.write('0123456789')
  await drawn()
  assert.equal(shown(), '0123456789')
  live.write('ab')
  await drawn()
  assert.equal(shown(), '0123456789\nab\na live li')
  live.write('\n漢字漢字漢')
  await drawn()
  assert.equal(shown(), '0123456789\nab\n漢字漢字漢')
  live.write('x')
  live.set(['\u001b[2mstyled and long\u001b[0m'])
  assert.match(shown(), /\nstyled an$/)
})
