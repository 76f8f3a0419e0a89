import assert from 'node:assert/strict'
import { test } from 'node:test'
import { subjectOf } from './permission.ts'

test('AG-16 a person sees the plain command, or the whole input if it has more than a command', () => {
  assert.equal(subjectOf('Bash', { command: 'make test', description: 'run the tests' }), 'make test')
  const more = { command: 'make test', run_in_background: true }
  assert.equal(subjectOf('Bash', more), JSON.stringify(more))
  assert.equal(subjectOf('Write', { file_path: '/a', content: 'b' }), '{"file_path":"/a","content":"b"}')
})
