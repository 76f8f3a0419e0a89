/** One trace from the caller through delegations, tools, agents and webhooks, on a real platform. */

import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { after, before, test } from 'node:test'
import { createFakeAgents } from '../fakes/agents/fake-program.ts'
import { serve } from '../harness/loopback-server.ts'
import { type PlatformUnderTest, replyText, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const TRACE = {
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  tracestate: 'congo=t61,rojo=00f',
}
const SEEN = `${TRACE.traceparent} ${TRACE.tracestate}`
const OTHER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const SHOW = 'cat >/dev/null; printf "%s %s" "$TRACEPARENT" "$TRACESTATE"'
const META = { runtime_config: { pass_meta: 'true', timeout: '100s' } }

const fake = createFakeAgents()
let platform: PlatformUnderTest
before(async () => {
  platform = await startPlatform({ args: ['--allow-outbound', '127.0.0.1/32'] })
  await platform.exec(SHOW, { name: 'shower' })
})
after(() => platform.dispose())

let sent = 0
async function send(id: string, { headers = TRACE as object, configuration = {}, text = 'go' } = {}) {
  const message = { messageId: `trace-${++sent}`, role: 'ROLE_USER', parts: [{ text }] }
  const answer = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${platform.token}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, configuration } }),
  })
  const { result } = (await answer.json()) as { result: { task: Parameters<typeof replyText>[0] } }
  return replyText(result.task)
}

test('PL-15 traceparent and tracestate reach the program, and what it delegates with the a2a command', async () => {
  const lead = await platform.exec(`${SHOW}; printf " / "; a2a delegate shower go`, { name: 'lead', ...META })
  assert.equal(await send(lead), `${SEEN} / ${SEEN}\n`)
  const own = await platform.exec(`cat >/dev/null; TRACEPARENT=${OTHER} TRACESTATE= a2a delegate shower go`, {
    name: 'own',
    ...META,
  })
  assert.equal(await send(own), `${OTHER} \n`, 'a program that makes spans names its own')
})

test('PL-15 a delegation of a process that does not know the trace of its turn belongs to it', async () => {
  const warm = 'cat >/dev/null; unset TRACEPARENT TRACESTATE; a2a delegate shower go'
  assert.equal(await send(await platform.exec(warm, { name: 'warm', ...META })), `${SEEN}\n`)
})

test('PL-15 a tool call continues the trace that its _meta names, or else that of its turn', async () => {
  /** Calls the tool with no help of a library, so that only `meta` can name a trace. */
  const call = (meta: object) => {
    const params = { name: 'delegate_task', arguments: { workspace_id: 'shower', task: 'go' }, ...meta }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const script = `const { MOLECULE_API_URL: url, MOLECULE_WORKSPACE_ID: id, MOLECULE_WORKSPACE_TOKEN: token } = process.env
      const headers = { Authorization: "Bearer " + token, "Content-Type": "application/json",
        Accept: "application/json, text/event-stream" }
      fetch(url + "/workspaces/" + id + "/mcp", { method: "POST", headers, body: JSON.stringify(${body}) })
        .then((answer) => answer.text()).then((text) => process.stdout.write(text))`
    return `cat >/dev/null; '${process.execPath}' -e '${script}'`
  }
  const named = await platform.exec(call({ _meta: { traceparent: OTHER } }), { name: 'tool-named', ...META })
  assert.match((await send(named)) ?? '', new RegExp(`"text":"${OTHER} "`))
  const plain = await platform.exec(call({}), { name: 'tool-plain', ...META })
  assert.match((await send(plain)) ?? '', new RegExp(`"text":"${SEEN}"`))
})

test('PL-15 an ACP agent gets the trace of each prompt, also when its process is warm', async () => {
  const made = await platform.request('POST', '/workspaces', {
    name: 'acp',
    runtime: 'acp',
    runtime_config: { cmd: fake('acp', 'meta') },
  })
  assert.deepEqual(JSON.parse((await send(made.body.id)) ?? ''), TRACE)
  assert.deepEqual(JSON.parse((await send(made.body.id, { headers: { traceparent: OTHER } })) ?? ''), {
    traceparent: OTHER,
  })
  assert.equal(await send(made.body.id, { headers: {} }), 'null')
})

test('PL-15 PL-19 the calls of a webhook have the trace of the request that set it', async (t) => {
  const received: IncomingHttpHeaders[] = []
  const { url } = await serve(t, (request, response) => {
    received.push(request.headers)
    request.resume().on('end', () => response.writeHead(200).end())
  })
  const id = await platform.exec('cat', { name: 'hooked' })
  await send(id, { configuration: { taskPushNotificationConfig: { url: `${url}/hook` } } })
  await waitUntil(() => received.length >= 2)
  for (const { traceparent, tracestate } of received) assert.deepEqual({ traceparent, tracestate }, TRACE)
})
