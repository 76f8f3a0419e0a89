import assert from 'node:assert/strict'
import test from 'node:test'
import { CALLER_KINDS, secretsOfCallers } from '../../../../test/fakes/platform/callers.ts'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'

test('PL-8 a task by its id alone is visible to people and to its workspace; for other callers it does not exist', async (t) => {
  const opened = await openDoor(t)
  const secrets = await secretsOfCallers(opened)
  const { json } = await opened.rpc('SendMessage', sendParams('hello'))
  const seen: string[] = []
  for (const caller of CALLER_KINDS) {
    const { status, json: task } = await opened.sendRequest(`/tasks/${json.result.task.id}`, { token: secrets[caller] })
    if (status === 200) seen.push(caller)
    else assert.equal(status, caller === 'none' || caller === 'wrong' ? 401 : 404, caller)
    if (status === 200) assert.equal(task.id, json.result.task.id)
  }
  assert.deepEqual(seen, ['viewer', 'member', 'own', 'admin'])
})

test('PL-8 a program sees the task that it sent, and a workspace the task that its child process sent for it', async (t) => {
  const opened = await openDoor(t)
  const secrets = await secretsOfCallers(opened)
  const { json } = await opened.rpc('SendMessage', sendParams('mine'), { token: secrets.caller })
  const path = `/tasks/${json.result.task.id}`
  assert.equal((await opened.sendRequest(path, { token: secrets.caller })).status, 200)
  assert.equal((await opened.sendRequest(path, { token: secrets.other })).status, 404)
  const sibling = await opened.fakePlatform.workspaces.create({ name: 'near' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('delegated') })
  const a2a = `/workspaces/${sibling.id}/a2a`
  const sent = await opened.sendRequest(a2a, { method: 'POST', token: secrets.conversation, body })
  const delegated = `/tasks/${sent.json.result.task.id}`
  assert.equal((await opened.sendRequest(delegated, { token: secrets.conversation })).status, 200)
  assert.equal((await opened.sendRequest(delegated, { token: secrets.own })).status, 200)
  assert.equal((await opened.sendRequest(delegated, { token: secrets.caller })).status, 404)
})

test("TW-8 a status is one line of at most 500 characters, set only for the caller's own workspace", async (t) => {
  const texts: string[] = []
  const opened = await openDoor(t)
  const registry = {
    ...opened.fakePlatform.registry,
    setStatusText: async (_id: string, text: string) => {
      texts.push(text)
      return (await opened.fakePlatform.workspaces.get(WORKSPACE_ID)) as never
    },
  }
  const activity = { ...opened.fakePlatform.activity, addNote: async () => 1 }
  const { sendRequest } = await openDoor(t, { registry, activity })
  const put = (body: object) =>
    sendRequest(`/workspaces/${WORKSPACE_ID}/status`, {
      method: 'PUT',
      token: 'workspace-secret',
      body: JSON.stringify(body),
    })
  assert.deepEqual((await put({ text: ' two\nlines ' })).json, { status_text: 'two lines' })
  assert.equal((await put({ text: 'x'.repeat(501) })).status, 400)
  assert.equal((await put({})).status, 400)
  assert.deepEqual(texts, ['two lines'])
})
