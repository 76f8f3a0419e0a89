import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import type { McpCall } from '../../mcp-calls.ts'
import { ROUTES } from '../app.ts'
import { describeApi } from '../openapi/openapi.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/mcp`
const BODY = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

test('TW-1 the MCP server receives the call with its caller, its body and its size, as far as that is known', async (t) => {
  const calls: McpCall[] = []
  const mcp = async (call: McpCall) => {
    calls.push(call)
    return new Response(await call.wait(async () => 'waited'))
  }
  const { sendRequest } = await openDoor(t, { mcp })
  const post = { method: 'POST', token: secretOf('workspace'), body: BODY }
  const { status, text } = await sendRequest(PATH, post)
  assert.deepEqual([status, text], [200, 'waited'])
  await sendRequest(PATH, { ...post, headers: { 'transfer-encoding': 'chunked' } })
  const given = calls.map(({ workspaceId, identity, body, bytes }) => [workspaceId, identity.name, body, bytes])
  const parsed = JSON.parse(BODY)
  assert.deepEqual(given, [
    [WORKSPACE_ID, 'workspace', parsed, BODY.length],
    [WORKSPACE_ID, 'workspace', parsed, 0],
  ])
  assert.equal(calls[0]?.taskViews.length, 2, 'a workspace sees what it sent and what it received')
})

test('TW-1 the failure of a tool is logged, and its caller sees nothing internal', async (t) => {
  const mcp = async ({ refuse }: McpCall) => new Response(refuse(new TypeError('cannot read "inside"')))
  const { sendRequest, fakePlatform } = await openDoor(t, { mcp })
  const { text, headers } = await sendRequest(PATH, { method: 'POST', token: secretOf('workspace'), body: BODY })
  const id = headers['x-request-id']
  assert.equal(text, `an internal error; the log has it under this id (${id})`)
  assert.ok(fakePlatform.logged.some(({ requestId, code }) => requestId === id && code === 'internal'))
})

test('PL-9 an MCP call counts as an event stream of its token while it runs', async (t) => {
  const held = Promise.withResolvers<void>()
  let running = 0
  const mcp = async () => {
    running++
    await held.promise
    return new Response('')
  }
  const { sendRequest } = await openDoor(t, { mcp })
  const call = () => sendRequest(PATH, { method: 'POST', token: secretOf('workspace'), body: BODY })
  const calls = Array.from({ length: 257 }, call)
  const first = await Promise.race(calls)
  assert.deepEqual([first.status, first.json.error.code], [429, 'too_many_requests'])
  held.resolve()
  const answers = await Promise.all(calls)
  assert.deepEqual([answers.filter(({ status }) => status === 200).length, running], [256, 256])
})

test('TW-1 an MCP server without sessions answers GET and DELETE with 405', async (t) => {
  const { sendRequest } = await openDoor(t)
  for (const method of ['GET', 'DELETE']) {
    const { status, json, headers } = await sendRequest(PATH, { method, token: secretOf('workspace') })
    const message = 'Method not allowed: this server keeps no session; use POST.'
    assert.deepEqual(
      [status, headers.allow, json],
      [405, 'POST', { jsonrpc: '2.0', error: { code: -32_000, message }, id: null }],
    )
  }
  const described = describeApi(ROUTES, '1').paths['/workspaces/{id}/mcp']?.['get']?.['responses']
  assert.equal((described as Record<number, { description: string }>)[405]?.description, 'Always')
})
