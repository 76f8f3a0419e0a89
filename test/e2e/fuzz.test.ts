import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { type Platform, wire } from '../../src/cli/wire.ts'
import { loadConfig } from '../../src/config/config.ts'
import { ROUTES } from '../../src/doors/http/app.ts'
import { describeApi } from '../../src/doors/http/openapi/openapi.ts'
import { createLog } from '../../src/log.ts'
import { brokenBodies, fromSchema, type Schema } from '../generators/fuzz-bodies.ts'

/** Bodies for all routes together, by default; `npm run test:fuzz` sends 10,000 to each route. */
const BODIES = 2000
/** Requests in flight at once, so that the store commits them together and requests interfere. */
const AT_ONCE = 8
const ADMIN = 'the-admin-of-the-fuzzed-platform'
const HEAP_GROWTH_BYTES_MAX = 96 * 1024 * 1024

let folder: string
let platform: Platform
let workspaceId: string
/** The workspace whose settings and files are changed, so that the other one can still be talked to. */
let changedId: string
let tokenId: string
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
const failures: string[] = []

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'molecule-fuzz-'))
  const flags = { port: '0', 'data-dir': folder, 'max-block': '200ms' }
  const config = await loadConfig({ flags, env: {} })
  const log = createLog('error', { write: (line) => failures.push(line.slice(0, 2000)) })
  platform = await wire({
    config,
    adminToken: ADMIN,
    folder: { host: 'host', standing: 'same' },
    log,
    environment: process.env,
  })
  const mock = { name: 'mock', runtime: 'mock', max_concurrent_tasks: 64 }
  workspaceId = JSON.parse((await post('/workspaces', Buffer.from(JSON.stringify(mock)))).text).id
  changedId = JSON.parse((await post('/workspaces', Buffer.from('{"name":"changed","runtime":"mock"}'))).text).id
  const viewer = Buffer.from('{"name":"rotated","role":"viewer"}')
  tokenId = JSON.parse((await post('/tokens', viewer)).text).id
})
after(async () => {
  agent.destroy()
  await platform.close(1000)
  await rm(folder, { recursive: true })
})

const post = (path: string, body: Buffer) => send('post', path, body)

function send(method: string, path: string, body: Buffer): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${ADMIN}`, 'content-length': body.length }
    const outgoing = request(platform.url + path, { method: method.toUpperCase(), agent, headers }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
      incoming.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

const document = describeApi(ROUTES, '0')
const definitions = document.components.schemas as Record<string, Schema>

/** Read when a value is generated, because the id is known only once the platform runs. */
const known = (id: () => string) => fc.constant(undefined).map(() => id())
const hints = {
  runtime: fc.constantFrom('mock', 'exec'),
  runtime_config: fc.constantFrom({}, { cmd: 'cat' }, { reply: 'x', cmd: 'true' }),
  parent_id: known(() => workspaceId),
  working_dir: fc.constant('/tmp'),
  role: fc.constantFrom('viewer', 'member', 'admin', 'ROLE_USER', 'user', 'x'),
  workspace_id: known(() => workspaceId),
  workspaces: known(() => workspaceId).map((id) => [id]),
  expires_in: fc.constantFrom('1h', '1.5h', '1s'),
  overlap: fc.constantFrom('1h', '0s'),
  parts: fc.constantFrom([{ text: 'hello' }], [{ kind: 'text', text: 'hello' }], [{ data: { a: [1] } }]),
}
const schemaContext = { definitions, hints }

/** The id in a path: mostly an existing one, else any text that a URL can carry. */
const named = (id: () => string) =>
  fc
    .oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.string({ minLength: 1 }) })
    .map((other) => encodeURIComponent((other ?? id()).toWellFormed()))

const METHODS = [
  ...['SendMessage', 'message/send', 'SendStreamingMessage', 'message/stream', 'GetTask', 'tasks/get'],
  ...['CancelTask', 'ListTasks', 'SubscribeToTask', 'GetExtendedAgentCard'],
]

const rpcBody = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 20, arbitrary: fc.constant('2.0') }, { weight: 1, arbitrary: fc.string() }),
    id: fc.oneof(fc.integer(), fc.string(), fc.constant(null)),
    method: fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...METHODS) }, { weight: 1, arbitrary: fc.string() }),
    params: fc.oneof(
      ...['SendMessage', 'MessageSend', 'TaskId', 'ListTasks'].map((name) =>
        fromSchema(definitions[name] ?? {}, schemaContext),
      ),
    ),
  },
  { requiredKeys: ['jsonrpc', 'method'] },
)

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  (['post', 'put', 'patch'] as const).flatMap((method) => {
    const operation = methods[method]
    return operation === undefined ? [] : [{ method, path, operation }]
  }),
)

/** The path of a file in a workspace: mostly one that may be written. */
const filePath = fc
  .oneof(
    fc.constantFrom('notes.md', 'config.yaml', 'a/b.txt', 'a', '../x', '.auth-token', '%'),
    fc.string({ minLength: 1 }),
  )
  .map((path) => path.toWellFormed().split('/').map(encodeURIComponent).join('/'))

const runs = Number(process.env['FUZZ_RUNS'] ?? Math.ceil(BODIES / operations.length))

for (const { method, path, operation } of operations) {
  test(`RE-4 ${method} ${path}: any body is answered with 2xx, or 4xx with the reason`, {
    timeout: 600_000,
  }, async () => {
    const content = operation.requestBody?.content['application/json'] as { schema: Schema } | undefined
    const value = operation['x-action'] === 'a2a' ? rpcBody : fromSchema(content?.schema ?? {}, schemaContext)
    const id = named(() => {
      if (path.startsWith('/tokens')) return tokenId
      return method === 'post' ? workspaceId : changedId
    })
    const one = fc.tuple(brokenBodies(value), id, filePath)
    const several = fc.array(one, { minLength: AT_ONCE, maxLength: AT_ONCE })
    const property = fc.asyncProperty(several, async (all) => {
      const isAnswered = ([body, name, file]: (typeof all)[number]) =>
        assertAnswered({ method, path, name, file }, body)
      await Promise.all(all.map(isAnswered))
    })
    await fc.assert(property, { numRuns: 10, endOnFailure: true })
    const beforeBytes = await heapBytes()
    await fc.assert(property, { numRuns: Math.ceil(runs / AT_ONCE), endOnFailure: false })
    const grownBytes = (await heapBytes()) - beforeBytes
    assert.ok(grownBytes < HEAP_GROWTH_BYTES_MAX, `the heap grew by ${grownBytes} bytes`)
    assert.deepEqual(failures, [], 'the log has no error')
  })
}

interface FuzzTarget {
  readonly method: string
  readonly path: string
  readonly name: string
  readonly file: string
}

async function assertAnswered({ method, path, name, file }: FuzzTarget, body: Buffer): Promise<void> {
  // A function, because `$&` in a replacement has a meaning.
  const at = path
    .replace('{id}', () => name)
    .replace('{path}', () => file)
    .replace('{message}', 'm_nobody')
    .replace('{task}', 't_nobody')
  const { status, text } = await send(method, at, body)
  assert.ok((status >= 200 && status < 300) || (status >= 400 && status < 500), `${status} ${text.slice(0, 300)}`)
  if (status >= 400) assert.notEqual(JSON.parse(text).error.message, '')
}

/** After a garbage collection: the bytes that are still referenced. */
async function heapBytes(): Promise<number> {
  const { setFlagsFromString } = await import('node:v8')
  const { runInNewContext } = await import('node:vm')
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

test('RE-4 after all broken bodies the platform answers a message', async () => {
  const message = { messageId: 'after-the-storm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const made = JSON.parse((await post('/workspaces', Buffer.from('{"name":"calm","runtime":"mock"}'))).text)
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }))
  const { text } = await post(`/workspaces/${made.id}/a2a`, body)
  assert.match(text, /echo: hello/)
})
