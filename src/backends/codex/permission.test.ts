/** What a person sees of codex's requests: another folder is named, and a request that says too little is marked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PermissionRequest } from '../backend.ts'
import { answerRequest } from './permission.ts'

async function subjectOf(method: string, params: object): Promise<string> {
  const asked: PermissionRequest[] = []
  const permissions = {
    allowedTools: [],
    changesOf: () => undefined,
    workingDir: '/shop',
    newId: () => 'question-1',
    async ask(request: PermissionRequest) {
      asked.push(request)
      return 'denied' as const
    },
  }
  await answerRequest({ method, params }, permissions, new AbortController().signal)
  return asked[0]?.subject ?? ''
}

const COMMAND = 'item/commandExecution/requestApproval'

test('PL-24 AG-2 the subject of a command names a folder that is not the working folder', async () => {
  const command = "/bin/bash -lc 'npm test'"
  assert.equal(await subjectOf(COMMAND, { itemId: '1', command, cwd: '/shop' }), 'npm test')
  assert.equal(await subjectOf(COMMAND, { itemId: '1', command }), 'npm test')
  assert.equal(await subjectOf(COMMAND, { itemId: '1', command, cwd: "/o'ther" }), "cd '/o'\\''ther' && npm test")
})

test('PL-24 AG-2 a request that does not say what happens is in parentheses, so that no rule covers it', async () => {
  assert.equal(await subjectOf(COMMAND, { itemId: '1', reason: 'needs network' }), '(needs network)')
  assert.equal(await subjectOf(COMMAND, { itemId: '1' }), '(an action that codex does not name)')
  assert.equal(await subjectOf(COMMAND, { networkApprovalContext: { host: 'a.b' } }), '{"host":"a.b"}')
  const change = 'item/fileChange/requestApproval'
  assert.equal(await subjectOf(change, { itemId: '1' }), '(a change of files that codex does not describe)')
})
