/**
 * A codex for tests: a real process that reads codex's arguments and speaks what codex 0.166.0 speaks, `exec --json` and
 * `app-server`, from recordings of it (samples/codex) with thread and text put in. What it does is chosen by its scenario,
 * by `--fake NAME`, or by a message that begins with `!NAME`. It remembers its threads in its home, and each start is a
 * line of `starts.jsonl` there.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text as readAll } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

type Json = Record<string, unknown>

const argv = process.argv.slice(2)
const after = (name: string): string | undefined => {
  const at = argv.indexOf(name)
  return at < 0 ? undefined : argv[at + 1]
}
const dir = process.env['FAKE_HOME'] ?? ''
const fake = after('--fake') ?? process.env['FAKE_SCENARIO'] ?? 'echo'
const samples = join(import.meta.dirname, 'samples', 'codex')
const lines = (file: string): Json[] =>
  readFileSync(join(samples, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const print = (message: Json) => process.stdout.write(`${JSON.stringify(message)}\n`)

// ---- threads

interface Thread {
  readonly id: string
  readonly messages: string[]
  /** Codex counts over the whole thread. */
  input: number
  output: number
}

const fileOf = (id: string) => join(dir, `thread-${id}.json`)
const isKnown = (id: string) => existsSync(fileOf(id))
const load = (id: string): Thread => JSON.parse(readFileSync(fileOf(id), 'utf8'))
const fresh = (): Thread => ({ id: randomUUID(), messages: [], input: 0, output: 0 })

function remember(thread: Thread, message: string): void {
  thread.messages.push(message)
  thread.input += 10
  thread.output += 5
  writeFileSync(fileOf(thread.id), JSON.stringify(thread))
}

/** `!NAME rest` is the behaviour NAME on the text `rest`. */
function chosen(message: string): { name: string; text: string } {
  const command = /^!([a-z0-9-]+) ?/.exec(message)
  if (command === null) return { name: fake, text: message }
  return { name: command[1] ?? '', text: message.slice(command[0].length) }
}

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

/** A tool in a session of its own, which no signal to codex's group reaches. */
const startTool = (): ChildProcess => spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })

// ---- exec

async function exec(): Promise<void> {
  const message = await readAll(process.stdin)
  const id = after('resume')
  const isUuid = id !== undefined && /^[0-9a-f-]{36}$/.test(id)
  if (isUuid && !isKnown(id)) {
    process.stderr.write(readFileSync(join(samples, 'unknown-session.stderr'), 'utf8').replaceAll(/[0-9a-f-]{36}/g, id))
    process.exit(1)
  }
  // Anything else than a UUID begins a new thread in silence, as the real one does.
  const thread = isUuid && fake !== 'forget' ? load(id) : fresh()
  const { name, text } = chosen(message)
  if (name === 'complain') complain()
  const error = ERRORS[name]
  const script = lines(error ?? (name === 'tool' ? 'mcp-tool.jsonl' : 'success.jsonl'))
  if (error === undefined) remember(thread, message)
  if (name === 'endless') return endless(thread)
  for (const event of script) print(filled(event, thread, replyOf(name, text, thread)))
  process.exitCode = error === undefined ? 0 : 1
  // The real one stays for five seconds with its plugins on.
  if (name === 'linger') await delay(300_000)
}

function filled(event: Json, thread: Thread, text: string): Json {
  const item = event['item'] as Json | undefined
  if (event['type'] === 'thread.started') return { ...event, thread_id: thread.id }
  if (event['type'] === 'turn.completed') {
    return {
      ...event,
      usage: { ...(event['usage'] as Json), input_tokens: thread.input, output_tokens: thread.output },
    }
  }
  return item?.['type'] === 'agent_message' ? { ...event, item: { ...item, text } } : event
}

async function endless(thread: Thread): Promise<void> {
  for (const event of lines('success.jsonl').slice(0, 3)) print(filled(event, thread, ''))
  startTool()
  if (fake === 'stubborn') process.on('SIGTERM', () => undefined)
  await delay(300_000)
}

// ---- app-server

const recorded = lines('app-server.from-agent.jsonl')
const template = (method: string): Json => recorded.find((line) => line['method'] === method)?.['params'] as Json
const threadAnswer = recorded.find((line) => line['id'] === 1)?.['result'] as Json

let loaded: Thread | undefined
let asked = 0
const waiting = new Map<unknown, (result: Json) => void>()
let interrupt: (() => void) | undefined

const note = (method: string, params: Json) => {
  const threadId = loaded?.id
  print({ method, params: { ...template(method), ...params, threadId } })
}

function ask(method: string, params: Json): Promise<Json> {
  const id = asked++
  print({ method, id, params: { threadId: loaded?.id, ...params } })
  return new Promise((resolve) => waiting.set(id, resolve))
}

async function answer({ id, method, params = {} }: { id: unknown; method: string; params?: Json }): Promise<void> {
  const refuse = (message: string) => void print({ id, error: { code: -32600, message } })
  if (method === 'initialize') {
    const greeting = recorded[0]?.['result'] as Json
    return void print({ id, result: { ...greeting, userAgent: `molecule/${VERSION} (Debian 12.0.0; x86_64)` } })
  }
  if (method === 'account/login/start') {
    // Kept by the process alone: written down here, so that a test can see it.
    appendFileSync(join(dir, 'logins.jsonl'), `${JSON.stringify(params)}\n`)
    return void print({ id, result: { type: params['type'] } })
  }
  if (method === 'thread/start' || method === 'thread/resume') {
    const wanted = String(params['threadId'])
    if (method === 'thread/resume' && !isKnown(wanted)) return refuse(`no rollout found for thread id ${wanted}`)
    loaded = method === 'thread/start' ? fresh() : load(wanted)
    appendFileSync(join(dir, 'threads.jsonl'), `${JSON.stringify({ method, params })}\n`)
    print({ id, result: { ...threadAnswer, thread: { ...(threadAnswer['thread'] as Json), id: loaded.id } } })
    if (method === 'thread/resume') note('thread/tokenUsage/updated', usageOf(loaded))
    return
  }
  if (method === 'turn/interrupt') {
    print({ id, result: {} })
    return interrupt?.()
  }
  if (method !== 'turn/start' || loaded === undefined) return refuse(`unknown method ${method}`)
  appendFileSync(join(dir, 'turns.jsonl'), `${JSON.stringify(params)}\n`)
  const turn = { id: randomUUID(), items: [], status: 'inProgress', error: null }
  print({ id, result: { turn } })
  const [input] = params['input'] as { text: string }[]
  await takeTurn(loaded, turn, input?.text ?? '')
}

const usageOf = ({ input, output }: Thread): Json => {
  const total = { totalTokens: input + output, inputTokens: input, outputTokens: output }
  return { tokenUsage: { total, last: { totalTokens: 15, inputTokens: 10, outputTokens: 5 } } }
}

async function takeTurn(one: Thread, turn: Json, message: string): Promise<void> {
  const { name, text } = chosen(message)
  const finish = (status: string, error: Json | null = null) => {
    note(fake === 'renamed' ? 'turn/finished' : 'turn/completed', { turn: { ...turn, status, error } })
  }
  note('turn/started', { turn })
  if (name === 'complain') return complain()
  if (name === 'endless' || name === 'deaf') {
    startTool()
    note('item/started', {
      item: { type: 'commandExecution', id: 'call_1', command: 'sleep 300', status: 'inProgress' },
    })
    // An interrupted turn leaves the tool's child alive, as the real one does.
    if (name === 'endless') interrupt = () => finish('interrupted')
    return
  }
  const failure = ERRORS[name]
  if (failure !== undefined) {
    const words = lines(failure).at(-1)?.['error'] as Json
    const status = Number(/\d{3}/.exec(name)?.[0])
    const codexErrorInfo =
      name === 'error-500' ? 'other' : { responseTooManyFailedAttempts: { httpStatusCode: status || 404 } }
    note('error', { error: { message: 'Reconnecting... 1/1' }, willRetry: true })
    return finish('failed', { ...words, codexErrorInfo })
  }
  if (name === 'context') return finish('failed', { message: 'too much', codexErrorInfo: 'contextWindowExceeded' })
  remember(one, message)
  const words = name.startsWith('ask-') ? await useTool(name, text) : replyOf(name, text, one)
  if (name === 'commentary') await tellMessage('Let me think.', 'commentary')
  if (name === 'twice') await tellMessage('First of all.', null)
  if (words !== '') await tellMessage(words, null, name === 'stream' ? 20 : 0)
  note('thread/tokenUsage/updated', usageOf(one))
  finish('completed')
}

/** In pieces, with a pause between two where somebody is to see them come. */
async function tellMessage(text: string, phase: string | null, pauseMs = 0): Promise<void> {
  const id = `msg_${randomUUID()}`
  const item = { ...(template('item/completed')['item'] as Json), type: 'agentMessage', id, phase }
  note('item/started', { item: { ...item, text: '' } })
  const characters = [...text]
  const length = Math.max(4, Math.ceil(characters.length / 40))
  for (let at = 0; at < characters.length; at += length) {
    note('item/agentMessage/delta', { itemId: id, delta: characters.slice(at, at + length).join('') })
    if (pauseMs > 0) await delay(pauseMs)
  }
  note('item/completed', { item: { ...item, text } })
}

/** Asks for permission as the real one does, and says what came of it. */
async function useTool(name: string, subject: string): Promise<string> {
  const [item, method, more] = TOOLS[name]?.(subject) ?? [{}, '', {}]
  note('item/started', { item: { ...item, id: 'call_1', status: 'inProgress' } })
  const answered = await ask(method, { itemId: name === 'ask-mcp' ? undefined : 'call_1', ...more })
  const allowed = answered['decision'] === 'accept' || answered['action'] === 'accept'
  const denied =
    name === 'ask-mcp'
      ? { status: 'failed', error: { message: 'user rejected MCP tool call' } }
      : { status: 'declined' }
  note('item/completed', { item: { ...item, id: 'call_1', ...(allowed ? { status: 'completed' } : denied) } })
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

// ---- what it tells of itself

/** A newer one, with one thing changed: no app server, or another name for the event that ends a turn. */
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

/** The words of its protocol, as its own schema lists them. */
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

appendFileSync(join(dir, 'starts.jsonl'), `${JSON.stringify({ argv, cwd: process.cwd(), env: process.env })}\n`)
if (argv.includes('--version')) process.stdout.write(`codex-cli ${VERSION}\n`)
else if (argv.includes('--help')) process.stdout.write(OPTIONS)
else if (argv.includes('exec')) await exec()
else if (fake === 'no-app-server') {
  // It takes the word for a prompt.
  process.stderr.write('Error: stdin is not a terminal\n')
  process.exitCode = 1
} else if (argv.includes('generate-json-schema')) writeSchema(after('--out') ?? '')
else {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line)
    if (message.method === undefined) waiting.get(message.id)?.(message.result ?? {})
    else if (message.id !== undefined) void answer(message)
  })
}
