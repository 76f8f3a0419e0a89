import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginningOf, closeOpenFence, safeLink, settleStreaming } from './markdown-text.ts'

test('only links to web pages and mail addresses are links', () => {
  assert.equal(safeLink('https://a.test/x'), 'https://a.test/x')
  assert.equal(safeLink('mailto:a@b.test'), 'mailto:a@b.test')
  for (const wrong of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    '/workspaces',
    'file:///etc',
  ]) {
    assert.equal(safeLink(wrong), undefined, wrong)
  }
})

test('a code fence that still grows is closed, and a closed one stays as it is', () => {
  assert.equal(closeOpenFence('a\n```js\nlet x'), 'a\n```js\nlet x\n```')
  assert.equal(closeOpenFence('```\nx\n```\ny'), '```\nx\n```\ny')
  assert.equal(closeOpenFence('````\n```\nx'), '````\n```\nx\n````')
})

test('CV-2 a text that still grows shows no mark that the next piece explains', () => {
  assert.equal(settleStreaming('a\n-'), 'a\n')
  assert.equal(settleStreaming('a\n=='), 'a\n')
  assert.equal(settleStreaming('a **bold'), 'a **bold**')
  assert.equal(settleStreaming('a **bold*'), 'a **bold**')
  assert.equal(settleStreaming('a **'), 'a ')
  assert.equal(settleStreaming('run `npm te'), 'run `npm te`')
  assert.equal(settleStreaming('see [the page](https://a.te'), 'see the page')
  assert.equal(settleStreaming('see [the pa'), 'see the pa')
  assert.equal(settleStreaming('```js\nlet x'), '```js\nlet x\n```')
  for (const whole of ['a **b** c', '- one\n- two', 'a `b` c', '[x](https://a.test) y', 'a * b', '2 * 3 = 6']) {
    assert.equal(settleStreaming(whole), whole)
  }
})

test('CV-4 the beginning of a long text ends with a whole word, and with no mark of a list alone', () => {
  const text = '1. keep the column, or\n2. copy the data'
  assert.equal(beginningOf(text, 10), '1. keep…')
  assert.equal(beginningOf(text, 25), '1. keep the column, or…')
  assert.equal(beginningOf(text, 28), '1. keep the column, or…')
  assert.equal(beginningOf(text, 32), '1. keep the column, or\n2. copy…')
  assert.equal(beginningOf('x'.repeat(50), 5), 'xxxxx…')
})
