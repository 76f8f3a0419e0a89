/**
 * A fake claude: a real process that takes claude's flags and prints what claude 2.1.327 prints, from recordings
 * (samples/claude) with the session id and the text replaced. Its scenario, `--fake NAME` or a message `!NAME text`
 * chooses the behaviour. It keeps its sessions in its home and adds a line to `starts.jsonl` there at each start.
 * The scenarios of VERSIONS are earlier versions.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
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

const VERSIONS: Readonly<Record<string, string>> = { ancient: '2.0.1', old: '2.1.197', sums: '2.1.280' }
/** What each turn costs. */
const TURN_USD = 0.25

const argv = process.argv.slice(2)
const fake = argumentAfter('--fake') ?? scenario
const resumed = argumentAfter('--resume')
const isStream = argumentAfter('--input-format') === 'stream-json'

const readLines = (file: string): Json[] => readSampleLines(`claude/${file}`)
const print = (message: Json) => process.stdout.write(`${JSON.stringify(message)}\n`)
const [success = {}] = readLines('json-success.json')
const [init = {}] = readLines('stream-json-success.jsonl')

interface Session {
  readonly id: string
  readonly messages: string[]
}

function openSession(): Session | undefined {
  if (resumed === undefined) return { id: randomUUID(), messages: [] }
  const messages = loadSession(resumed)
  return messages && { id: resumed, messages }
}

function remember({ id, messages }: Session, message: string): void {
  messages.push(message)
  saveSession(id, messages)
}

/** The files that the flags name, recorded for tests, because the backend removes them. */
function readFlagFiles(): Json {
  const content = (name: string) => {
    const file = argumentAfter(name)
    return file === undefined ? undefined : readFileSync(file, 'utf8')
  }
  return { systemPrompt: content('--append-system-prompt-file'), mcp: content('--mcp-config') }
}

function unknownSession(): void {
  process.stderr.write(`No conversation found with session ID: ${resumed}\n`)
  if (isStream) {
    for (const line of readLines('unknown-session.stream-json.jsonl')) {
      print({ ...line, session_id: resumed, errors: [`No conversation found with session ID: ${resumed}`] })
    }
  }
  process.exitCode = 1
}

const ERRORS: Readonly<Record<string, string>> = {
  'error-400': 'error-400.json',
  'error-401': 'error-401.json',
  'error-429': 'error-429.json',
  'error-529': 'error-529.json',
  'bad-model': 'error-bad-model.json',
}

/** The result of a turn by behaviour. */
function resultOf(name: string, text: string, { id, messages }: Session): Json {
  const own = { session_id: id }
  const file = ERRORS[name]
  if (file !== undefined) return { ...readLines(file)[0], ...own }
  switch (name) {
    case 'empty':
      return { ...success, ...own, result: '' }
    case 'count':
      return { ...success, ...own, result: `n=${messages.length} ${messages.join('|')}` }
    case 'max-turns': {
      const { result: _, ...rest } = success
      const errors = ['Reached maximum number of turns (25)']
      return { ...rest, ...own, is_error: true, subtype: 'error_max_turns', errors }
    }
    case 'long':
      return { ...success, ...own, is_error: true, api_error_status: 400, result: 'API Error: 400 prompt is too long' }
    case 'usage-limit': {
      const result = 'Claude AI usage limit reached|4102444800'
      return { ...success, ...own, is_error: true, api_error_status: 429, result }
    }
    case 'refuse':
    case 'refuse-once': {
      const [, status, result = ''] = /^(\d{3}) (.*)$/s.exec(text) ?? []
      // `refuse-once` answers a message that it has refused before.
      const refused = join(HOME, `refused-${Buffer.from(text).toString('hex').slice(0, 100)}`)
      if (name === 'refuse-once' && existsSync(refused)) return { ...success, ...own, result: 'answered after all' }
      writeFileSync(refused, '')
      return { ...success, ...own, is_error: true, api_error_status: Number(status), result }
    }
    case 'denied': {
      const denial = { tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: { command: 'touch x' } }
      return { ...success, ...own, result: text, permission_denials: [denial, denial] }
    }
    case 'outbox':
      writeFileSync(join(process.env['MOLECULE_OUTBOX'] ?? '', text), `the file ${text}\n`)
      return { ...success, ...own, result: `wrote ${text}` }
    case 'flood':
      return { ...success, ...own, result: 'x'.repeat(11 * 1024 * 1024) }
    default:
      return { ...success, ...own, result: text }
  }
}

async function answerOnce(session: Session): Promise<void> {
  const message = await readStdin()
  // The real claude refuses empty input. The scenario `empty` tests an empty reply, also to an empty message.
  if (message === '' && fake !== 'empty') {
    process.stderr.write(
      'Error: Input must be provided either through stdin or as a prompt argument when using --print\n',
    )
    process.exitCode = 1
    return
  }
  remember(session, message)
  const { name, text } = chooseBehaviour(message, fake)
  if (name === 'endless' || name === 'deaf') return endless(name === 'deaf')
  if (name === 'die') process.kill(process.pid, 'SIGKILL')
  if (name === 'garbage') return void process.stdout.write('this is not JSON')
  if (name === 'complain') {
    process.stderr.write('claude: no such luck\n')
    process.exitCode = 3
    return
  }
  if (name === 'warn') process.stderr.write('Error: an old setting is ignored\n')
  const result = { ...resultOf(name, text, session), ...costOf(session) }
  process.stdout.write(`${JSON.stringify(name === 'array' ? [init, result] : result)}\n`)
  if (result['is_error'] === true) process.exitCode = 1
  if (name === 'linger') await delay(60_000)
}

/** Starts a tool in its own process session, as claude does, and keeps running. */
function endless(isDeaf: boolean): void {
  spawn('/bin/sh', ['-c', 'exec setsid sleep 300'], { stdio: 'ignore' })
  if (isDeaf) process.on('SIGTERM', () => undefined)
  setInterval(() => undefined, 60_000)
}

const unsupportedRequest = ({ request_id }: { request_id: string }): Json => ({
  type: 'control_response',
  response: { subtype: 'error', request_id, error: 'Unsupported control request subtype: initialize' },
})

/** What the running turn does when it gets a control response or an interrupt. */
interface TurnCallbacks {
  answer(response: Json): void
  interrupt(): void
}

function runStream(session: Session): void {
  const callbacks: Partial<TurnCallbacks> = {}
  let turns: Promise<void> = Promise.resolve()
  if (fake === 'greeting') process.stdout.write('Welcome!\n[warning] something old\n')
  const input = createInterface({ input: process.stdin })
  input.on('line', (line) => {
    const message = JSON.parse(line)
    if (message.type === 'control_response') return callbacks.answer?.(message.response.response)
    if (message.type === 'control_request') {
      if (fake === 'no-initialize' && message.request.subtype === 'initialize')
        return print(unsupportedRequest(message))
      if (chooseBehaviour(session.messages.at(-1) ?? '', fake).name === 'deaf') return
      print({
        type: 'control_response',
        response: { subtype: 'success', request_id: message.request_id, response: {} },
      })
      return callbacks.interrupt?.()
    }
    // claude runs turns one after another.
    const { text } = message.message.content[0]
    turns = turns.then(() => runTurn(session, text, (next) => Object.assign(callbacks, next)))
  })
  input.on('close', () => void turns.then(() => process.exit(0)))
}

type SetCallbacks = (callbacks: TurnCallbacks) => void

async function runTurn(session: Session, message: string, setCallbacks: SetCallbacks): Promise<void> {
  remember(session, message)
  const { name, text } = chooseBehaviour(message, fake)
  print({ ...init, session_id: session.id })
  if (name === 'die') process.kill(process.pid, 'SIGKILL')
  if (name === 'complain') {
    process.stderr.write('claude: no such luck\n')
    process.exit(3)
  }
  if (name === 'retry') replay('error-500-with-retries.jsonl', session)
  else if (name === 'tool') replay('stream-json-mcp-tool.jsonl', session)
  else if (name === 'edit') replay('stream-json-edit.jsonl', session, text)
  else if (name === 'endless' || name === 'deaf')
    await new Promise<void>((resolve) => waitForInterrupt(session, name, { setCallbacks, resolve }))
  else if (name === 'ask') await new Promise<void>((resolve) => ask(session, text, { setCallbacks, resolve }))
  else printResult(session, resultOf(name, text, session), name)
  if (name === 'wake') askBetweenTurns(setCallbacks)
}

/** Requests a permission after its turn and waits: without an answer there is no next turn. */
function askBetweenTurns(setCallbacks: SetCallbacks): void {
  const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' }, tool_use_id: 'toolu_2' }
  setCallbacks({
    answer: (response) => writeFileSync(join(HOME, 'woken.json'), JSON.stringify(response)),
    interrupt: () => undefined,
  })
  setTimeout(() => print({ type: 'control_request', request_id: 'woken', request }), 50)
}

/** Prints a recorded turn without its init. A text stands for the word "three" of the recording. */
function replay(file: string, { id }: Session, text = ''): void {
  for (const line of readLines(file).slice(1)) {
    const said = text === '' ? line : (JSON.parse(JSON.stringify(line).replaceAll('three', text)) as Json)
    print({ ...said, session_id: id })
  }
}

interface RunningTurn {
  readonly setCallbacks: SetCallbacks
  readonly resolve: () => void
}

/** Runs until it is interrupted; `deaf` also ignores SIGTERM. */
function waitForInterrupt(session: Session, name: string, { setCallbacks, resolve }: RunningTurn): void {
  endless(name === 'deaf')
  setCallbacks({
    answer: () => undefined,
    interrupt() {
      const { result: _, ...rest } = success
      const errors = ['[ede_diagnostic] result_type=user']
      print({ ...rest, session_id: session.id, is_error: true, subtype: 'error_during_execution', errors })
      resolve()
    },
  })
}

/** Asks for permission to run the text as a command; the reply says what was allowed. */
function ask(session: Session, command: string, { setCallbacks, resolve }: RunningTurn): void {
  const input = { command, description: 'what it is for' }
  const request = { subtype: 'can_use_tool', tool_name: 'Bash', input, tool_use_id: 'toolu_1' }
  setCallbacks({
    answer(response) {
      const isAllowed = response['behavior'] === 'allow'
      const denials = isAllowed ? [] : [{ tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: input }]
      const result = isAllowed ? `ran ${JSON.stringify(response['updatedInput'])}` : `was told ${response['message']}`
      printResult(session, { ...success, session_id: session.id, result, permission_denials: denials }, 'ask')
      resolve()
    },
    interrupt: () =>
      waitForInterrupt(session, 'endless', { setCallbacks: (callbacks) => callbacks.interrupt(), resolve }),
  })
  const use = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { ...input, timeout: 600_000 } }
  print({ type: 'assistant', message: { role: 'assistant', content: [use] }, session_id: session.id })
  print({ type: 'control_request', request_id: randomUUID(), request })
}

/** Prints the text as stream events, then the result. */
function printResult(session: Session, result: Json, name: string): void {
  const { id } = session
  const text = typeof result['result'] === 'string' && result['is_error'] !== true ? result['result'] : ''
  const pieces = name === 'stream' ? (text.match(/[^ ]* ?/gu) ?? []) : [text]
  const event = (content: Json) =>
    print({ type: 'stream_event', event: content, session_id: id, parent_tool_use_id: null })
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  for (const piece of pieces.filter(Boolean)) {
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } })
  }
  const recent = { fake: { inputTokens: 10, outputTokens: 5, costUSD: TURN_USD } }
  print({
    ...result,
    ...costOf(session),
    ...(VERSIONS[fake] === undefined && { model_usage_since_last_result: recent }),
  })
}

/** The oldest version counts from the start of its process, the others from the start of the session. */
function costOf({ messages }: Session): Json {
  const turns = fake === 'old' ? messages.length - messagesBefore : messages.length
  return { total_cost_usd: TURN_USD * turns }
}

if (argv.includes('--version')) {
  process.stdout.write(`${fake.startsWith('without-') ? '2.2.0' : (VERSIONS[fake] ?? '2.1.327')} (Claude Code)\n`)
  process.exit(0)
}
appendFileSync(
  join(HOME, 'starts.jsonl'),
  `${JSON.stringify({ pid: process.pid, argv, env: process.env, files: readFlagFiles() })}\n`,
)
if (argv.includes('--dangerously-skip-permissions') && process.env['IS_SANDBOX'] !== '1' && fake === 'root') {
  process.stderr.write(readSample('claude/root-refused.stderr'))
  process.exit(1)
}
// A version that lacks a flag: `without-input-format`.
const lacking = fake === 'old' ? 'without-system-prompt-snapshot' : fake
const unknown = lacking.startsWith('without-') ? `--${lacking.slice('without-'.length)}` : undefined
if (unknown !== undefined && argv.includes(unknown)) {
  process.stderr.write(`error: unknown option '${unknown}'\n`)
  process.exit(1)
}
const opened = openSession()
const messagesBefore = opened?.messages.length ?? 0
if (opened === undefined) unknownSession()
else if (isStream) runStream(opened)
else await answerOnce(opened)
