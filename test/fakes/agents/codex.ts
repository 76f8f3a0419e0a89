/**
 * A fake codex: a real process that takes codex's arguments and prints what codex 0.166.0 prints in `exec --json` and
 * `app-server`, from recordings (samples/codex) with the thread id and the text replaced. Its scenario, `--fake NAME` or
 * a message `!NAME text` chooses the behaviour. It keeps its threads in its home and adds a line to `starts.jsonl` there
 * at each start.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import {
  argumentAfter,
  chooseBehaviour,
  HOME,
  loadSession,
  readSample,
  readSampleLines,
  readStdin,
  saveSession,
  scenario,
} from './fake-agent.ts'

type Json = Record<string, unknown>

const argv = process.argv.slice(2)
const fake = argumentAfter('--fake') ?? scenario
const readLines = (file: string): Json[] => readSampleLines(`codex/${file}`)
const print = (message: Json) => process.stdout.write(`${JSON.stringify(message)}\n`)
const record = (file: string, value: Json) => appendFileSync(join(HOME, file), `${JSON.stringify(value)}\n`)

// ---- threads

interface Thread {
  readonly id: string
  readonly messages: string[]
}

const createThread = (): Thread => ({ id: randomUUID(), messages: [] })

function loadThread(id: string): Thread | undefined {
  const messages = loadSession(id)
  return messages && { id, messages }
}

function remember({ id, messages }: Thread, message: string): void {
  messages.push(message)
  saveSession(id, messages)
}

/** Codex counts tokens over the whole thread. */
const tokensOf = ({ messages }: Thread) => ({ input: 10 * messages.length, output: 5 * messages.length })

function replyOf(name: string, text: string, thread: Thread): string {
  if (name === 'empty') return ''
  if (name === 'count') return `n=${thread.messages.length} ${thread.messages.join('|')}`
  if (name === 'flood') return 'x'.repeat(11 * 1024 * 1024)
  return text
}

const ERRORS: Readonly<Record<string, string>> = {
  'error-401': 'error-401.jsonl',
  'error-429': 'error-429.jsonl',
  'error-500': 'error-500.jsonl',
  'error-529': 'error-529.jsonl',
  'bad-model': 'error-bad-model.jsonl',
}

function complain(): void {
  process.stderr.write('no such luck\n')
  process.exit(3)
}

/** Starts a tool in its own process session, which a signal to codex's process group does not reach. */
const startTool = (): ChildProcess => spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })

// ---- exec

async function exec(): Promise<void> {
  const message = await readStdin()
  const id = argumentAfter('resume')
  const isUuid = id !== undefined && /^[0-9a-f-]{36}$/.test(id)
  const resumed = isUuid ? loadThread(id) : undefined
  if (isUuid && resumed === undefined) {
    process.stderr.write(readSample('codex/unknown-session.stderr').replaceAll(/[0-9a-f-]{36}/g, id))
    process.exit(1)
  }
  // Like the real codex, silently starts a new thread when the id is not a UUID.
  const thread = resumed !== undefined && fake !== 'forget' ? resumed : createThread()
  const { name, text } = chooseBehaviour(message, fake)
  if (name === 'complain') complain()
  const error = ERRORS[name]
  const events = readLines(error ?? (name === 'tool' ? 'mcp-tool.jsonl' : 'success.jsonl'))
  if (error === undefined) remember(thread, message)
  if (name === 'endless') return endless(thread)
  if (name === 'no-network') return waitForNetwork((report) => print({ type: 'error', message: report }))
  for (const event of events) print(fillIn(event, thread, replyOf(name, text, thread)))
  process.exitCode = error === undefined ? 0 : 1
  // The real codex stays for five seconds when it has plugins.
  if (name === 'linger') await delay(300_000)
}

/** The recorded event with the thread id, the tokens and the text of this turn. */
function fillIn(event: Json, thread: Thread, text: string): Json {
  const item = event['item'] as Json | undefined
  if (event['type'] === 'thread.started') return { ...event, thread_id: thread.id }
  if (event['type'] === 'turn.completed') {
    const { input, output } = tokensOf(thread)
    return { ...event, usage: { ...(event['usage'] as Json), input_tokens: input, output_tokens: output } }
  }
  return item?.['type'] === 'agent_message' ? { ...event, item: { ...item, text } } : event
}

async function endless(thread: Thread): Promise<void> {
  for (const event of readLines('success.jsonl').slice(0, 3)) print(fillIn(event, thread, ''))
  startTool()
  if (fake === 'stubborn') process.on('SIGTERM', () => undefined)
  await delay(300_000)
}

/** Like the real codex, waits for ever and says so again and again. */
async function waitForNetwork(send: (report: string) => void): Promise<void> {
  for (;;) {
    send('Reconnecting... waiting for network')
    await delay(50)
  }
}

// ---- app-server

const recorded = readLines('app-server.from-agent.jsonl')
const template = (method: string): Json => recorded.find((line) => line['method'] === method)?.['params'] as Json
const threadAnswer = recorded.find((line) => line['id'] === 1)?.['result'] as Json

let currentThread: Thread | undefined
let requests = 0
const callbacks = new Map<unknown, (result: Json) => void>()
let interrupt: (() => void) | undefined

const notify = (method: string, params: Json) => {
  const threadId = currentThread?.id
  print({ method, params: { ...template(method), ...params, threadId } })
}

function ask(method: string, params: Json): Promise<Json> {
  const id = requests++
  print({ method, id, params: { threadId: currentThread?.id, ...params } })
  return new Promise((resolve) => callbacks.set(id, resolve))
}

async function answer({ id, method, params = {} }: { id: unknown; method: string; params?: Json }): Promise<void> {
  const refuse = (message: string) => void print({ id, error: { code: -32600, message } })
  if (method === 'initialize') {
    const greeting = recorded[0]?.['result'] as Json
    return void print({ id, result: { ...greeting, userAgent: `molecule/${VERSION} (Debian 12.0.0; x86_64)` } })
  }
  if (method === 'account/login/start') {
    // The real codex keeps it in memory only; recorded for tests.
    record('logins.jsonl', params)
    return void print({ id, result: { type: params['type'] } })
  }
  if (method === 'thread/start' || method === 'thread/resume') {
    const threadId = String(params['threadId'])
    const thread = method === 'thread/start' ? createThread() : loadThread(threadId)
    if (thread === undefined) return refuse(`no rollout found for thread id ${threadId}`)
    currentThread = thread
    record('threads.jsonl', { method, params })
    print({ id, result: { ...threadAnswer, thread: { ...(threadAnswer['thread'] as Json), id: thread.id } } })
    if (method === 'thread/resume') notify('thread/tokenUsage/updated', usageOf(thread))
    return
  }
  if (method === 'config/read') return void print({ id, result: { config: { model: null }, origins: {} } })
  if (method === 'model/list') {
    const data = ['gpt-other', 'gpt-usual'].map((model) => ({ id: model, model, isDefault: model === 'gpt-usual' }))
    return void print({ id, result: { data, nextCursor: null } })
  }
  if (method === 'turn/interrupt') {
    print({ id, result: {} })
    return interrupt?.()
  }
  if (method !== 'turn/start' || currentThread === undefined) return refuse(`unknown method ${method}`)
  record('turns.jsonl', params)
  const turn = { id: randomUUID(), items: [], status: 'inProgress', error: null }
  print({ id, result: { turn } })
  const [input] = params['input'] as { text: string }[]
  await runTurn(currentThread, turn, input?.text ?? '')
}

const usageOf = (thread: Thread): Json => {
  const { input, output } = tokensOf(thread)
  const total = { totalTokens: input + output, inputTokens: input, outputTokens: output }
  return { tokenUsage: { total, last: { totalTokens: 15, inputTokens: 10, outputTokens: 5 } } }
}

async function runTurn(thread: Thread, turn: Json, message: string): Promise<void> {
  const { name, text } = chooseBehaviour(message, fake)
  const finish = (status: string, error: Json | null = null) => {
    notify(fake === 'renamed' ? 'turn/finished' : 'turn/completed', { turn: { ...turn, status, error } })
  }
  notify('turn/started', { turn })
  if (name === 'complain') return complain()
  if (name === 'no-network') {
    return waitForNetwork((report) => notify('error', { error: { message: report }, willRetry: true }))
  }
  if (name === 'endless' || name === 'deaf') {
    startTool()
    notify('item/started', {
      item: { type: 'commandExecution', id: 'call_1', command: 'sleep 300', status: 'inProgress' },
    })
    // Like the real codex, an interrupted turn leaves the tool's child alive.
    if (name === 'endless') interrupt = () => finish('interrupted')
    return
  }
  const failure = ERRORS[name]
  if (failure !== undefined) {
    const failed = readLines(failure).at(-1)?.['error'] as Json
    const status = Number(/\d{3}/.exec(name)?.[0])
    const codexErrorInfo =
      name === 'error-500' ? 'other' : { responseTooManyFailedAttempts: { httpStatusCode: status || 404 } }
    notify('error', { error: { message: 'Reconnecting... 1/1' }, willRetry: true })
    return finish('failed', { ...failed, codexErrorInfo })
  }
  if (name === 'context') return finish('failed', { message: 'too much', codexErrorInfo: 'contextWindowExceeded' })
  remember(thread, message)
  const reply = name.startsWith('ask-') ? await useTool(name, text) : replyOf(name, text, thread)
  if (name === 'commentary') await sendMessage('Let me think.', 'commentary')
  if (name === 'twice') await sendMessage('First of all.', null)
  if (reply !== '') await sendMessage(reply, null, name === 'stream' ? 20 : 0)
  notify('thread/tokenUsage/updated', usageOf(thread))
  finish('completed')
}

/** Sends a message in pieces; with a pause, each piece arrives separately. */
async function sendMessage(text: string, phase: string | null, pauseMs = 0): Promise<void> {
  const id = `msg_${randomUUID()}`
  const item = { ...(template('item/completed')['item'] as Json), type: 'agentMessage', id, phase }
  notify('item/started', { item: { ...item, text: '' } })
  const characters = [...text]
  const length = Math.max(4, Math.ceil(characters.length / 40))
  for (let at = 0; at < characters.length; at += length) {
    notify('item/agentMessage/delta', { itemId: id, delta: characters.slice(at, at + length).join('') })
    if (pauseMs > 0) await delay(pauseMs)
  }
  notify('item/completed', { item: { ...item, text } })
}

/** Asks for permission as the real codex does; the reply says whether it was given. */
async function useTool(name: string, subject: string): Promise<string> {
  const [item, method, more] = TOOLS[name]?.(subject) ?? [{}, '', {}]
  notify('item/started', { item: { ...item, id: 'call_1', status: 'inProgress' } })
  const response = await ask(method, { itemId: name === 'ask-mcp' ? undefined : 'call_1', ...more })
  const allowed = response['decision'] === 'accept' || response['action'] === 'accept'
  const denied =
    name === 'ask-mcp'
      ? { status: 'failed', error: { message: 'user rejected MCP tool call' } }
      : { status: 'declined' }
  notify('item/completed', { item: { ...item, id: 'call_1', ...(allowed ? { status: 'completed' } : denied) } })
  return allowed ? 'done' : 'not done'
}

const TOOLS: Readonly<Record<string, (subject: string) => [Json, string, Json]>> = {
  'ask-command': (command) => [
    { type: 'commandExecution', command },
    'item/commandExecution/requestApproval',
    { kind: 'command', command, cwd: process.cwd() },
  ],
  'ask-patch': (path) => [
    { type: 'fileChange', changes: [{ path, kind: { type: 'add' }, diff: '+hello' }] },
    'item/fileChange/requestApproval',
    {},
  ],
  'ask-mcp': (wish) => [
    { type: 'mcpToolCall', server: 'lab', tool: 'ping', arguments: { wish } },
    'mcpServer/elicitation/request',
    {
      serverName: 'lab',
      mode: 'form',
      message: 'Allow the lab MCP server to run tool "ping"?',
      _meta: { codex_approval_kind: 'mcp_tool_call', tool_params: { wish } },
    },
  ],
  'ask-other': () => [{ type: 'commandExecution', command: 'x' }, 'item/strange/requestApproval', {}],
}

// ---- version, help and schema

/** A newer version without the app server, or with another name for the event that ends a turn. */
const VERSION = fake === 'renamed' || fake === 'no-app-server' ? '0.170.0' : '0.166.0'

const OPTIONS = `
  -c, --config <key=value>
      --disable <FEATURE>
  -m, --model <MODEL>
  -s, --sandbox <SANDBOX_MODE>
      --dangerously-bypass-approvals-and-sandbox
  -C, --cd <DIR>
      --skip-git-repo-check
      --json
`

/** The methods of the protocol, as codex's own schema lists them. */
const SCHEMA: Readonly<Record<string, readonly string[]>> = {
  'ServerNotification.json': [
    ...['turn/started', fake === 'renamed' ? 'turn/finished' : 'turn/completed', 'item/started', 'item/completed'],
    ...['item/agentMessage/delta', 'thread/tokenUsage/updated'],
  ],
  'ClientRequest.json': ['initialize', 'thread/start', 'thread/resume', 'turn/start', 'turn/interrupt'],
  'ServerRequest.json': ['item/commandExecution/requestApproval', 'item/fileChange/requestApproval'],
}

function writeSchema(out: string): void {
  mkdirSync(out, { recursive: true })
  for (const [file, methods] of Object.entries(SCHEMA)) {
    const oneOf = methods.map((method) => ({ properties: { method: { enum: [method] } } }))
    writeFileSync(join(out, file), JSON.stringify({ oneOf }))
  }
}

// ----

record('starts.jsonl', { argv, cwd: process.cwd(), env: process.env })
if (argv.includes('--version')) process.stdout.write(`codex-cli ${VERSION}\n`)
else if (argv.includes('--help')) process.stdout.write(OPTIONS)
else if (argv.includes('exec')) await exec()
else if (fake === 'no-app-server') {
  // A version without the command takes it for a prompt.
  process.stderr.write('Error: stdin is not a terminal\n')
  process.exitCode = 1
} else if (argv.includes('generate-json-schema')) writeSchema(argumentAfter('--out') ?? '')
else {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line)
    if (message.method === undefined) callbacks.get(message.id)?.(message.result ?? {})
    else if (message.id !== undefined) void answer(message)
  })
}
