/** Secrets that must not leave with outgoing calls, agents or refusals, on a real platform. */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { type TestContext, test } from 'node:test'
import { serve } from '../harness/loopback-server.ts'
import { replyText, startPlatformFor } from '../harness/platform.ts'

const CREDENTIAL = 'the-credential-of-the-relay'

/** An agent on one port that refuses all calls, and a card on another port that names it. */
async function splitAgent(t: TestContext) {
  const atCard: IncomingHttpHeaders[] = []
  const atAgent: IncomingHttpHeaders[] = []
  const { url: agent } = await serve(t, (request, response) => {
    atAgent.push(request.headers)
    request.resume().on('end', () => response.writeHead(401).end('who are you?'))
  })
  const cardAt = (interfaceUrl: string) => ({
    name: 'split',
    capabilities: { streaming: true },
    supportedInterfaces: [{ url: interfaceUrl, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  })
  const { url: named } = await serve(t, (request, response) => {
    atCard.push(request.headers)
    response.end(JSON.stringify(cardAt(`${agent}/rpc`)))
  })
  const { url: redirecting } = await serve(t, (request, response) => {
    atCard.push(request.headers)
    if (request.method === 'GET') return void response.end(JSON.stringify(cardAt('/rpc')))
    request.resume().on('end', () => response.writeHead(307, { location: `${agent}/rpc` }).end())
  })
  return { atCard, atAgent, named, redirecting, agent }
}

test('AG-17 the credentials of a relay go only to the origin of its url, not to another port that card or redirect names', async (t) => {
  const { atCard, atAgent, named, redirecting, agent } = await splitAgent(t)
  const platform = await startPlatformFor(t)
  const relayTo = async (url: string) => {
    const headers = JSON.stringify({ Authorization: `Bearer ${CREDENTIAL}`, 'X-Key': CREDENTIAL })
    const wanted = { name: 'relay', runtime: 'a2a', url, runtime_config: { headers, max_attempts: 1 } }
    const { body } = await platform.request('POST', '/workspaces', wanted)
    const task = await platform.send(body.id, 'hello')
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    return JSON.stringify(task.status.message)
  }
  assert.match(await relayTo(named), new RegExp(`names ${agent}, which gets no credentials`))
  await relayTo(redirecting)
  assert.ok(atAgent.length >= 2)
  assert.doesNotMatch(JSON.stringify(atAgent), new RegExp(CREDENTIAL))
  assert.ok(atCard.every((headers) => headers['x-key'] === CREDENTIAL))
})

test('BK-1 the URL and the credentials of a webhook do not reach the agent', async (t) => {
  const { url: receiver } = await serve(t, (_request, response) => response.end())
  const platform = await startPlatformFor(t, { args: ['--allow-outbound', '127.0.0.1/32'] })
  const id = await platform.exec('cat', { runtime_config: { format: 'json' } })
  const url = `${receiver}/hook/path-secret?signature=query-secret`
  const authentication = { scheme: 'Bearer', credentials: 'bearer-secret' }
  const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const configuration = { taskPushNotificationConfig: { id: 'mine', url, token: 'token-secret', authentication } }
  const { body } = await platform.rpc(id, 'SendMessage', { message, configuration })
  const request = replyText(body.result.task) ?? ''
  assert.equal(JSON.parse(request).raw.params.message.messageId, 'm-1')
  assert.doesNotMatch(request, /-secret|127\.0\.0\.1/)
})

test('AG-17 a refused URL tells no internal address, and neither answer nor log shows its path', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat')
  const task = await platform.send(id, 'hello')
  const url = 'http://localhost:8099/hook/path-secret?signature=query-secret'
  const { body } = await platform.rpc(id, 'CreateTaskPushNotificationConfig', { taskId: task.id, url })
  assert.match(body.error.message, /localhost does not have a public address; .*--allow-outbound/)
  assert.doesNotMatch(JSON.stringify(body), /127\.|::1|loopback|-secret/)
  assert.doesNotMatch(platform.output(), /-secret/)
})
