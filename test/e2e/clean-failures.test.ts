/**
 * RT-7 for every backend: a path and a key in whatever an agent prints or an endpoint answers reach neither a caller over
 * A2A nor a chat. The owner sees the output with the key masked.
 */
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { ChatService } from '../fakes/chat-service.ts'
import { startSocketService } from '../fakes/socket-service.ts'
import { runCommand } from '../harness/command.ts'
import { getTask, newMessage, type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const PATH = '/srv/private/ledger.db'
const KEY = `sk-ant-api03-${'k'.repeat(40)}`
const PLANT = `cannot open ${PATH} with ${KEY}`

/** A program that prints the plant on both outputs, in the form that its first argument names. */
const PROGRAM = `#!${process.execPath}
const plant = ${JSON.stringify(PLANT)}
const form = process.env.LEAK_FORM ?? process.argv[1].split('-').at(-1)
console.error(plant)
if (process.argv.includes('--version')) console.log('9.9.9')
else if (form === 'garbage') console.log('this is not JSON at all: ' + plant)
else if (form === 'exit') { console.log(plant); process.exitCode = 3 }
else if (form === 'stderr') process.exitCode = 3
else if (form === 'result') console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: true, result: plant }))
else if (process.argv.includes('exec') && form === 'retry') {
  const retry = { type: 'error', message: 'Reconnecting... 1/1 (' + plant + ')' }
  for (const line of [retry, { type: 'error', message: plant }, { type: 'turn.failed', error: { message: plant } }]) console.log(JSON.stringify(line))
} else require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const error = { code: -32603, message: plant, data: { details: plant } }
  const agentCapabilities = { loadSession: true }
  const greeting = { protocolVersion: 1, agentCapabilities, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
  const reply = { jsonrpc: '2.0', id }
  if (method === 'initialize' && form === 'rpc') reply.result = greeting
  else if (form === 'retry') {
    reply.result = { ...greeting, sessionId: 's', thread: { id: 't' }, turn: { id: 'u' } }
    if (method === 'session/prompt') {
      const warning = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Warning: ' + plant + '\\n\\n' } }
      console.log(JSON.stringify({ method: 'session/update', params: { sessionId: 's', update: warning } }))
      reply.error = error
      delete reply.result
    }
    if (method === 'turn/start') setImmediate(() => {
      const failed = { id: 'u', status: 'failed', error: { message: plant } }
      console.log(JSON.stringify({ method: 'error', params: { threadId: 't', willRetry: true, error: { message: 'Reconnecting... 1/1 (' + plant + ')' } } }))
      console.log(JSON.stringify({ method: 'turn/completed', params: { threadId: 't', turn: failed } }))
    })
  }
  else if (form === 'reply') reply.result = { parts: [{ kind: plant }], status: { state: plant } }
  else if (form === 'tool' && method === 'initialize') reply.result = { ...greeting, protocolVersion: '2025-06-18' }
  else if (form === 'tool' && method === 'tools/list') reply.result = { tools: [{ name: 'run', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }] }
  else if (form === 'tool') reply.result = { isError: true, content: [{ type: 'text', text: plant }] }
  else reply.error = error
  console.log(JSON.stringify(reply))
})
`

const ADAPTER = `export default {
  name: 'leaky', summary: 'leaks', options: {}, reportsTools: false,
  create: () => ({
    name: 'leaky',
    validate: async () => ({ ok: true }),
    async *run() { yield { type: 'failed', error: new Error(${JSON.stringify(PLANT)}) } },
    async close() {},
  }),
}
`

interface Subject {
  readonly runtime: string
  /** The form of the program's or the endpoint's answer. */
  readonly form: string
  readonly options?: Readonly<Record<string, unknown>>
}

const warm = (runtime: string, form: string): Subject => ({ runtime, form, options: { mode: 'session' } })
const oneShot = (runtime: string, form: string): Subject => ({ runtime, form, options: { mode: 'oneshot' } })
const CLIS = ['claude-code', 'codex', 'gemini', 'opencode', 'hermes'] as const

const SUBJECTS: readonly Subject[] = [
  ...CLIS.flatMap((cli) => [oneShot(cli, 'garbage'), oneShot(cli, 'exit'), warm(cli, 'exit')]),
  // claude speaks no JSON-RPC.
  ...CLIS.filter((cli) => cli !== 'claude-code').map((cli) => warm(cli, 'rpc')),
  oneShot('claude-code', 'result'),
  // codex tells of each repeated call, and codex-acp of what it dislikes.
  oneShot('codex', 'retry'),
  warm('codex', 'retry'),
  { runtime: 'openclaw', form: 'garbage' },
  ...['rpc', 'exit', 'garbage', 'retry'].map((form) => ({ runtime: 'acp', form })),
  ...['exit', 'rpc', 'reply'].map((form) => ({ runtime: 'stdio', form })),
  // Its stdout is the reply, and is streamed.
  { runtime: 'exec', form: 'stderr' },
  ...['rpc', 'tool', 'exit'].map((form) => ({ runtime: 'mcp', form })),
  ...['400', '401', '500', 'text', 'stream'].map((form) => ({ runtime: 'openai', form })),
  ...['500', 'text', 'error'].map((form) => ({ runtime: 'a2a', form })),
  { runtime: 'leaky', form: 'error' },
]

describe('RT-7 what people see of a failure', () => {
  let platform: PlatformUnderTest
  let folder: string
  let server: Server
  let url: string
  let chat: ChatService
  /** The token of a person who only watches. */
  let viewer: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'molecule-clean-'))
    const dataDir = join(folder, 'data')
    await mkdir(join(dataDir, 'adapters', 'leaky'), { recursive: true, mode: 0o700 })
    const adapter = (name: string, text: string) =>
      writeFile(join(dataDir, 'adapters', 'leaky', name), text, { mode: 0o600 })
    await adapter('index.js', ADAPTER)
    await adapter('package.json', JSON.stringify({ name: 'leaky', type: 'module', main: 'index.js' }))
    for (const form of ['garbage', 'exit', 'stderr', 'rpc', 'result', 'retry', 'reply', 'tool']) {
      await writeFile(join(folder, `agent-${form}`), PROGRAM)
      await chmod(join(folder, `agent-${form}`), 0o755)
    }
    server = createServer((request, response) => answerLeaky(request.url ?? '', response)).listen(0, '127.0.0.1')
    await waitUntil(() => server.listening)
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    platform = await startPlatform({ dataDir, env: { HOME: folder, OPENAI_API_KEY: 'sk-none' } })
    viewer = (await platform.request('POST', '/tokens', { name: 'v', role: 'viewer' })).body.token
    chat = await startSocketService()
    const added = await runCommand(['channel', 'add', 'socket', '--service-url', chat.apiUrl], {
      env: { MOLECULE_HOME: dataDir },
      input: chat.token,
    })
    assert.equal(added.code, 0, added.err)
    await waitUntil(() => chat.isConnected())
  })
  after(async () => {
    await platform?.dispose()
    await chat?.close()
    server?.closeAllConnections()
    server?.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  const optionsOf = ({ runtime, form, options }: Subject): Record<string, unknown> => {
    const program = join(folder, `agent-${form}`)
    if (runtime === 'openai') return { url: `${url}/${form}`, token_env: 'OPENAI_API_KEY', ...options }
    if (runtime === 'a2a') return { url: `${url}/a2a-${form}/.well-known/agent-card.json`, ...options }
    if (runtime === 'mcp') return { command: program, tool: 'run', argument: 'text', ...options }
    if (['acp', 'stdio', 'exec'].includes(runtime)) return { cmd: program, ...options }
    return { bin: program, permission: 'bypass', ...options }
  }

  for (const subject of SUBJECTS) {
    const mode = subject.options?.['mode'] ?? ''
    test(`RT-7 GW-8 ${subject.runtime} ${mode} ${subject.form}: no path and no key in a sentence`, async () => {
      const { status, body } = await platform.request('POST', '/workspaces', {
        name: `${subject.runtime}-${mode}-${subject.form}`,
        runtime: subject.runtime,
        model: 'any',
        max_attempts: 1,
        runtime_config: optionsOf(subject),
      })
      assert.equal(status, 201, JSON.stringify(body))
      const made = await platform.request('POST', '/tokens', { name: 'c', role: 'caller', workspaces: [body.id] })
      const raw = await fetch(`${platform.url}/workspaces/${body.id}/a2a`, {
        method: 'POST',
        headers: { authorization: `Bearer ${made.body.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'SendStreamingMessage',
          params: { message: newMessage('go') },
        }),
      }).then((answer) => answer.text())
      assert.match(raw, /TASK_STATE_FAILED/)
      const taskId = /"taskId":"([^"]+)"/.exec(raw)?.[1] ?? ''
      assert.doesNotMatch(raw, /srv|sk-ant|cannot open/, 'a caller')
      for (const [token, path] of [
        [made.body.token, `/messages/${taskId}/story`],
        [viewer, `/workspaces/${body.id}/activity`],
      ]) {
        const shown = await fetch(`${platform.url}${path}`, { headers: { authorization: `Bearer ${token}` } })
        assert.equal(shown.status, 200)
        assert.doesNotMatch(await shown.text(), /srv|sk-ant|cannot open/, path)
      }
      const { message } = (await getTask(platform, body.id, taskId)).status
      const { category, error_id: errorId } = message.metadata
      assert.match(raw, new RegExp(`\\(${category}, ${errorId}\\)`))
      const owned = JSON.stringify(message)
      assert.ok(!owned.includes(KEY), 'the owner does not see the key')
      if (subject.form === 'garbage' && mode === 'oneshot') {
        assert.equal(category, 'unreadable_output')
        assert.match(owned, /Failed to parse CLI output: .*srv\/private/, 'the owner sees the output')
      }
      const place = chat.newPlace('direct')
      const bound = await runCommand(['channel', 'bind', 'socket', place.id, body.id], {
        env: { MOLECULE_HOME: platform.dataDir },
      })
      assert.equal(bound.code, 0, bound.err)
      chat.say({ place, author: { id: 'ada', name: 'Ada', isBot: false }, text: 'go' })
      await waitUntil(() => chat.written(place).length > 0)
      const { pairings } = (await platform.request('GET', '/pairings')).body
      const [pairing] = pairings.filter(({ state }: { state: string }) => state === 'pending')
      if (pairing !== undefined)
        await runCommand(['pair', 'approve', pairing.code], { env: { MOLECULE_HOME: platform.dataDir } })
      await waitUntil(
        () => chat.written(place).some(({ text }) => text.includes('err_')),
        'the chat hears of the failure',
      )
      assert.doesNotMatch(JSON.stringify(chat.written(place)), /srv|sk-ant|cannot open/, 'a chat')
    })
  }

  /** An endpoint that puts the plant into every answer: OpenAI's chat completions, and A2A with its card. */
  function answerLeaky(path: string, response: import('node:http').ServerResponse): void {
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    const form = path.split('/')[1]?.replace('a2a-', '') ?? ''
    if (path.endsWith('/agent-card.json')) {
      const own = `${url}/a2a-${form}/rpc`
      const supportedInterfaces = [{ url: own, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
      const modes = { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] }
      return void json(200, {
        name: 'x',
        description: 'x',
        version: '1',
        supportedInterfaces,
        capabilities: {},
        skills: [],
        ...modes,
      })
    }
    if (/^\d+$/.test(form)) return void json(Number(form), { error: { message: PLANT, code: PLANT } })
    if (form === 'error') return void json(200, { jsonrpc: '2.0', id: 1, error: { code: -32603, message: PLANT } })
    if (form === 'stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.end(`data: ${JSON.stringify({ error: { message: PLANT, code: 'x' } })}\n\n`)
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(PLANT)
  }
})
