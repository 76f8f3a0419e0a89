import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandIn, needTitle, permissionNote } from './need-text.ts'

test('CV-6 each kind of need has its own title', () => {
  const title = (kind: string, more = {}) => needTitle({ kind, workspace_name: 'Ada', ...more } as never)
  assert.equal(title('permission', { permission: { tool: 'Bash' } }), 'Ada wants to run a command')
  assert.equal(title('permission', { permission: { tool: 'deploy' } }), 'Ada wants to use deploy')
  assert.equal(title('question'), 'Ada asks')
  assert.equal(title('dead_letter'), 'A message to Ada failed')
  assert.equal(title('delivery'), 'An answer may not have arrived')
  assert.equal(title('schedule'), 'A schedule of Ada is paused')
  assert.equal(title('login'), 'Ada cannot work: it is not logged in')
  assert.equal(title('dead_letter', { workspace_name: null }), 'A message to A deleted workspace failed')
  assert.equal(title('a kind of tomorrow'), 'Ada needs you')
})

test('CV-6 the time left, and the command of a sentence', () => {
  const now = Date.parse('2026-01-01T10:00:00Z')
  const note = (expires_at: string, permission?: object) => permissionNote({ expires_at, permission } as never, now)
  assert.equal(note('2026-01-01T10:27:30Z'), 'Expires in 28 min.')
  assert.equal(note('2026-01-01T12:00:00Z'), 'Expires in 2 h.')
  const would_cover = { sentence: 'Covers exactly this command.' }
  assert.equal(note('2026-01-01T09:59:00Z', { would_cover }), 'Expires now. “Always” covers exactly this command.')
  assert.equal(commandIn('codex is not logged in: run "codex login"'), 'codex login')
  assert.equal(commandIn('no command'), undefined)
})
