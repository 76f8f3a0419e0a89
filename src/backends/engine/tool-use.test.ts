import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shellScript } from '../codex/reply.ts'
import { allowsToolUse, splitEntry, subjectOfInput } from './tool-use.ts'

test('AG-16 a person sees the plain command, or the whole input if it has more than a command', () => {
  assert.equal(subjectOfInput({ command: 'make test', description: 'run the tests', timeout: 600_000 }), 'make test')
  const more = { command: 'make test', run_in_background: true }
  assert.equal(subjectOfInput(more), JSON.stringify(more))
  assert.equal(subjectOfInput({ file_path: '/a', content: 'b' }), '{"file_path":"/a","content":"b"}')
})

test('AG-19 allowed_tools takes the name of a tool, or its name with exactly this subject', () => {
  const use = { tool: 'Bash', subject: 'git log (--oneline), x' }
  assert.ok(allowsToolUse(['Bash'], use))
  assert.ok(allowsToolUse(['Read', 'Bash(git log (--oneline), x)'], use))
  for (const entry of ['Bash(git log)', 'Bas', 'git log (--oneline), x', 'Bash()']) {
    assert.ok(!allowsToolUse([entry], use), entry)
  }
  const mcp = { tool: 'mcp__lab__ping', subject: '{}' }
  assert.ok(allowsToolUse(['mcp__lab'], mcp) && !allowsToolUse(['mcp__la', 'mcp'], mcp))
  assert.deepEqual(splitEntry('Bash(a(b))'), { tool: 'Bash', subject: 'a(b)' })
  assert.equal(splitEntry('Bash'), undefined)
})

test('AG-19 the subject of a codex command is the script, without the shell that codex adds', () => {
  const recorded = `/bin/bash -lc "printf '\\\\000' > \\""'$MOLECULE_OUTBOX/delivery.bin"'`
  assert.equal(shellScript(recorded), `printf '\\000' > "$MOLECULE_OUTBOX/delivery.bin"`)
  assert.equal(shellScript("/bin/zsh -lc 'ls -la'"), 'ls -la')
  for (const command of ['git status', "/bin/bash -lc ls 'more'", "./bash -lc 'ls'", '/bin/bash -lc "ls']) {
    assert.equal(shellScript(command), command)
  }
})
