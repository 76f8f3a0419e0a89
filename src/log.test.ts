import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from './log.ts'

test('a hidden secret never reaches a line, wherever it stands', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  log.hide('s3cret-s3cret')
  log.info({ token: 's3cret-s3cret', err: new Error('no s3cret-s3cret here') }, 'told s3cret-s3cret in passing')
  assert.equal(lines.length, 1)
  assert.ok(!lines[0]?.includes('s3cret-s3cret'))
  assert.match(lines[0] ?? '', /told \[hidden\] in passing/)
})

test('a value too short to be a secret does not garble the log', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  log.hide('is')
  log.info({}, 'this is fine')
  assert.match(lines[0] ?? '', /this is fine/)
})
