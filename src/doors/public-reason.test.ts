import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publicReason } from './public-reason.ts'

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
