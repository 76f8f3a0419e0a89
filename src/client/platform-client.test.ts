import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import test, { type TestContext } from 'node:test'
import { readImports } from '../../scripts/read-imports.ts'
import { createPlatformClient } from './platform-client.ts'
import { listWorkspaces } from './workspaces.ts'

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

test('the token is sent as a bearer token, and not after a redirect', async (t) => {
  const seen: (string | undefined)[] = []
  const elsewhere = await serve(t, (request, response) => {
    seen.push(request.headers.authorization)
    response.end('{"workspaces":[]}')
  })
  const url = await serve(t, (_request, response) => response.writeHead(307, { Location: elsewhere }).end())
  const direct = createPlatformClient({ url: `${elsewhere}/`, token: 'secret' })
  assert.deepEqual(await listWorkspaces(direct), [])
  await assert.rejects(listWorkspaces(createPlatformClient({ url, token: 'secret' })), { code: 'timeout' })
  assert.deepEqual(seen, ['Bearer secret'])
})

test('PL-23 a list is read page by page, with the cursor of each page, also behind another parameter', async (t) => {
  const asked: (string | undefined)[] = []
  const url = await serve(t, (request, response) => {
    asked.push(request.url)
    const page = asked.length % 2 === 1 ? { next: 'a&b' } : {}
    response.end(JSON.stringify({ workspaces: [{ id: `w${asked.length}` }], pending: [], ...page }))
  })
  const client = createPlatformClient({ url, token: 'x' })
  assert.deepEqual(
    (await listWorkspaces(client)).map(({ id }) => id),
    ['w1', 'w2'],
  )
  await client.all('GET /pending', 'pending', { workspace_id: 'w' })
  const cursor = 'after=a%26b'
  assert.deepEqual(asked, [
    ...['/workspaces?limit=1000', `/workspaces?limit=1000&${cursor}`],
    ...['/pending?workspace_id=w', `/pending?workspace_id=w&${cursor}`],
  ])
})

test('an error of the platform keeps its code, hint, retry time and request id', async (t) => {
  let seconds = '3'
  const url = await serve(t, (_request, response) => {
    response.writeHead(429, { 'Retry-After': seconds, 'X-Request-Id': 'req_1' })
    response.end('{"error":{"code":"queue_full","message":"full","hint":"wait","id":"req_1"}}')
  })
  await assert.rejects(createPlatformClient({ url, token: undefined }).call('GET /workspaces/{id}', { id: 'ws_x' }), {
    code: 'queue_full',
    message: 'full: wait',
    retryable: true,
    details: { status: 429, requestId: 'req_1', retryAfterMs: 3000 },
  })
  for (const [given, details] of [
    ['0', { retryAfterMs: 0 }],
    ['Wed, 21 Oct 2026 07:28:00 GMT', {}],
    ['-1', {}],
  ] as const) {
    seconds = given
    await assert.rejects(createPlatformClient({ url, token: undefined }).call('GET /workspaces/{id}', { id: 'ws_x' }), {
      details: { status: 429, requestId: 'req_1', ...details },
    })
  }
})

test('a JSON-RPC error gets the error code that the platform had', async (t) => {
  const error = { code: -32001, message: 'there is no task t', data: [{ reason: 'TASK_NOT_FOUND' }] }
  const url = await serve(t, (_request, response) => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error })))
  const client = createPlatformClient({ url, token: 'x' })
  await assert.rejects(client.getTask('ws_x', 't'), { code: 'not_found', retryable: false })
})

test('PL-5 a JSON-RPC error with status 200 says what the status would have said: the code, and if a retry helps', async (t) => {
  const table: readonly [reason: string, metadata: object, expected: object][] = [
    ['WORKSPACE_NOT_FOUND', {}, { code: 'not_found', retryable: false }],
    ['INVALID_REQUEST', {}, { code: 'invalid_request', retryable: false }],
    ['METHOD_NOT_FOUND', {}, { code: 'unsupported_operation', retryable: false }],
    ['IDEMPOTENCY_CONFLICT', {}, { code: 'idempotency_conflict', retryable: false }],
    ['TIMEOUT', { retryAfterMs: '2000' }, { code: 'timeout', retryable: true, details: { retryAfterMs: 2000 } }],
    ['INTERNAL', {}, { code: 'internal', retryable: false }],
  ]
  let row = table[0]
  const url = await serve(t, (_request, response) => {
    const error = { code: -32602, message: 'no', data: [{ reason: row?.[0], metadata: row?.[1] }] }
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))
  })
  for (row of table) await assert.rejects(createPlatformClient({ url, token: 'x' }).getTask('ws_x', 't'), row[2])
})

test('the status decides about an answer that is not from the platform', async (t) => {
  const url = await serve(t, (_request, response) => response.writeHead(502).end('<html>bad gateway</html>'))
  const client = createPlatformClient({ url, token: 'x' })
  await assert.rejects(listWorkspaces(client), { retryable: true, message: /HTTP 502/ })
})

test('a timeout, a body that ends early and an abort are errors, and none hangs', async (t) => {
  const silent = await serve(t, () => undefined)
  const slow = createPlatformClient({ url: silent, token: 'x', timeoutMs: 50 })
  await assert.rejects(listWorkspaces(slow), { code: 'timeout', retryable: true, message: /did not answer in time/ })
  const cut = await serve(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('{', () => response.destroy())
  })
  await assert.rejects(listWorkspaces(createPlatformClient({ url: cut, token: 'x' })), { retryable: true })
  const controller = new AbortController()
  const waiting = listWorkspaces(createPlatformClient({ url: silent, token: 'x' }), controller.signal)
  controller.abort()
  await assert.rejects(waiting)
})

test('the client runs in a browser: it imports nothing of Node, and no schemas', () => {
  const seen = new Set<string>()
  const walk = (url: URL): void => {
    if (seen.has(url.href)) return
    seen.add(url.href)
    const source = stripTypeScriptTypes(readFileSync(url, 'utf8'))
    for (const { specifier = '' } of readImports(url.pathname, source)) {
      if (specifier.startsWith('.')) walk(new URL(specifier, url))
      else assert.equal(specifier, 'eventsource-parser', url.pathname)
    }
  }
  walk(new URL('./platform-client.ts', import.meta.url))
  assert.ok(seen.size > 5)
})
