import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asSentence, plainReason } from './sentence.ts'

test('CV-6 a reason is shown as a sentence; names of files stay as they are', () => {
  assert.equal(asSentence('a message failed for good'), 'A message failed for good.')
  assert.equal(asSentence('Is it?'), 'Is it?')
  assert.equal(asSentence('config.yaml, line 8: wrong'), 'config.yaml, line 8: wrong.')
  assert.equal(asSentence(''), '')
})

test('CV-4 a reason is shown without the codes for the log', () => {
  assert.equal(plainReason('it ended with exit code 3 (exit_3, err_01M7K7C97Y)'), 'it ended with exit code 3')
  assert.equal(plainReason('no space (left)'), 'no space (left)')
})
