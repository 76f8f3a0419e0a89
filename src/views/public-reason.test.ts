import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publicReason } from './public-reason.ts'

test('RT-7 callers that are no owners do not read what a program printed when it was asked for its version', () => {
  const call = 'backend "codex": `/opt/codex --version` failed'
  const remedy = 'Run it by hand to see the problem'
  for (const why of ['exit code 3', 'timed out', 'exit code SIGKILL'])
    assert.equal(
      publicReason(`${call}: ${why}: key sk-abc is refused\nby my.host: bye; ${remedy}`),
      `backend "codex": \`codex --version\` failed: ${why}`,
    )
  assert.equal(
    publicReason(`${call}: exit code 3; ${remedy}`),
    `backend "codex": \`codex --version\` failed: exit code 3; ${remedy}`,
  )
})

test('RT-7 the reason for callers that are no owners has the last name of each path, and all other words', () => {
  const cases = {
    '/home/ana/.molecule/workspaces/ws-1/config.yaml:3: unknown runtime "x"': 'config.yaml:3: unknown runtime "x"',
    'claude was not found at /opt/secret/claude': 'claude was not found at claude',
    'cannot run "/opt/secret place/claude": ENOENT': 'cannot run "claude": ENOENT',
    'there is no folder (/srv/work/)': 'there is no folder (work)',
    'cannot write to "/": EROFS': 'cannot write to "/": EROFS',
    'C:\\Users\\ana\\claude.exe is missing': 'claude.exe is missing',
    'cannot reach http://localhost:8080/a/b and https://x.test/c':
      'cannot reach http://localhost:8080/a/b and https://x.test/c',
    'no heartbeat for 95 s; 3/4 turns fail': 'no heartbeat for 95 s; 3/4 turns fail',
  }
  for (const [reason, shown] of Object.entries(cases)) assert.equal(publicReason(reason), shown)
})
