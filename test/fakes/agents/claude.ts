/**
 * A claude for tests: a real process that reads claude's flags and speaks what claude 2.1.325 speaks, from recordings
 * of it (samples/claude) with the session and the text put in. What it does is chosen by its scenario, by `--fake NAME`,
 * or by a message that begins with `!NAME`. It remembers its sessions in its home, and each start is a line of
 * `starts.jsonl` there.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text as readAll } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

const argv = process.argv.slice(2)
const flag = (name: string): string | undefined => {
  const at = argv.indexOf(name)
  return at < 0 ? undefined : argv[at + 1]
}
const dir = process.env['FAKE_HOME'] ?? ''
const fake = flag('--fake') ?? process.env['FAKE_SCENARIO'] ?? 'echo'
const resumed = flag('--resume')
const isStream = flag('--input-format') === 'stream-json'

const samples = join(import.meta.dirname, 'samples', 'claude')
const lines = (file: string): Sample[] =>
  readFileSync(join(samples, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
type Sample = Record<string, unknown>

const print = (message: Sample) => process.stdout.write(`${JSON.stringify(message)}\n`)
const [success = {}] = lines('json-success.json')
const [init = {}] = lines('stream-json-success.jsonl')

interface Session {
  readonly id: string
  messages: string[]
}

const fileOf = (id: string) => join(dir, `session-${id}.json`)

function openSession(): Session | undefined {
  if (resumed === undefined) return { id: randomUUID(), messages: [] }
  return existsSync(fileOf(resumed)) ? JSON.parse(readFileSync(fileOf(resumed), 'utf8')) : undefined
}

function remember(session: Session, message: string): void {
  session.messages.push(message)
  writeFileSync(fileOf(session.id), JSON.stringify(session))
}

/** What the files hold that it was given, for a test to look at: they are gone when it is. */
function given(): Sample {
  const content = (name: string) => {
    const file = flag(name)
    return file === undefined ? undefined : readFileSync(file, 'utf8')
  }
  return { systemPrompt: content('--append-system-prompt-file'), mcp: content('--mcp-config') }
}

function unknownSession(): void {
  process.stderr.write(`No conversation found with session ID: ${resumed}\n`)
  if (isStream) {
    for (const line of lines('unknown-session.stream-json.jsonl')) {
      print({ ...line, session_id: resumed, errors: [`No conversation found with session ID: ${resumed}`] })
    }
  }
  process.exitCode = 1
}

/** `!NAME rest` is the behaviour NAME on the text `rest`. */
function chosen(message: string): { name: string; text: string } {
  const command = /^!([a-z0-9-]+) ?/.exec(message)
  if (command === null) return { name: fake, text: message }
  return { name: command[1] ?? '', text: message.slice(command[0].length) }
}

const ERRORS: Readonly<Record<string, string>> = {
  'error-400': 'error-400.json',
  'error-401': 'error-401.json',
  'error-429': 'error-429.json',
  'error-529': 'error-529.json',
  'bad-model': 'error-bad-model.json',
}

/** The result of a turn, by behaviour; undefined where there never is one. */
function resultOf(name: string, text: string, { id, messages }: Session): Sample | undefined {
  const own = { session_id: id }
  const file = ERRORS[name]
  if (file !== undefined) return { ...lines(file)[0], ...own }
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
    case 'denied': {
      const denial = { tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: { command: 'touch x' } }
      return { ...success, ...own, result: text, permission_denials: [denial, denial] }
    }
    case 'flood':
      return { ...success, ...own, result: 'x'.repeat(11 * 1024 * 1024) }
    default:
      return { ...success, ...own, result: text }
  }
}

async function answerOnce(one: Session): Promise<void> {
  const message = await readAll(process.stdin)
  // One that is about to say nothing need not be told anything.
  if (message === '' && fake !== 'empty') {
    process.stderr.write(
      'Error: Input must be provided either through stdin or as a prompt argument when using --print\n',
    )
    process.exitCode = 1
    return
  }
  remember(one, message)
  const { name, text } = chosen(message)
  if (name === 'endless' || name === 'deaf') return endless(name === 'deaf')
  if (name === 'die') process.kill(process.pid, 'SIGKILL')
  if (name === 'garbage') return void process.stdout.write('this is no JSON')
  if (name === 'complain') {
    process.stderr.write('claude: no such luck\n')
    process.exitCode = 3
    return
  }
  if (name === 'warn') process.stderr.write('Error: an old setting is ignored\n')
  const result = resultOf(name, text, one) ?? {}
  process.stdout.write(`${JSON.stringify(name === 'array' ? [init, result] : result)}\n`)
  if (result['is_error'] === true) process.exitCode = 1
  if (name === 'linger') await delay(60_000)
}

/** A tool in a session of its own, as claude starts them. */
function endless(isDeaf: boolean): void {
  spawn('/bin/sh', ['-c', 'exec setsid sleep 300'], { stdio: 'ignore' })
  if (isDeaf) process.on('SIGTERM', () => undefined)
  setInterval(() => undefined, 60_000)
}

const unsupported = ({ request_id }: { request_id: string }): Sample => ({
  type: 'control_response',
  response: { subtype: 'error', request_id, error: 'Unsupported control request subtype: initialize' },
})

interface Waiting {
  answer(response: Sample): void
  interrupt(): void
}

function talk(one: Session): void {
  let waiting: Partial<Waiting> = {}
  let turns: Promise<void> = Promise.resolve()
  if (fake === 'greeting') process.stdout.write('Welcome!\n[warning] something old\n')
  const input = createInterface({ input: process.stdin })
  input.on('line', (line) => {
    const message = JSON.parse(line)
    if (message.type === 'control_response') return waiting.answer?.(message.response.response)
    if (message.type === 'control_request') {
      if (fake === 'no-initialize' && message.request.subtype === 'initialize') return print(unsupported(message))
      if (chosen(one.messages.at(-1) ?? '').name === 'deaf') return
      print({
        type: 'control_response',
        response: { subtype: 'success', request_id: message.request_id, response: {} },
      })
      return waiting.interrupt?.()
    }
    // One after the other, as claude does.
    turns = turns.then(() => turn(one, message.message.content[0].text, (next) => Object.assign(waiting, next)))
  })
  input.on('close', () => void turns.then(() => process.exit(0)))
  waiting = {}
}

async function turn(one: Session, message: string, wait: (waiting: Waiting) => void): Promise<void> {
  remember(one, message)
  const { name, text } = chosen(message)
  print({ ...init, session_id: one.id })
  if (name === 'die') process.kill(process.pid, 'SIGKILL')
  if (name === 'complain') {
    process.stderr.write('claude: no such luck\n')
    process.exit(3)
  }
  if (name === 'retry') replay('error-500-with-retries.jsonl', one)
  else if (name === 'tool') replay('stream-json-mcp-tool.jsonl', one)
  else if (name === 'endless' || name === 'deaf')
    await new Promise<void>((resolve) => cutShort(one, name, { wait, resolve }))
  else if (name === 'ask') await new Promise<void>((resolve) => ask(one, text, { wait, resolve }))
  else say(one, resultOf(name, text, one) ?? {}, name)
  if (name === 'wake') wakeUp(wait)
}

/** Goes on by itself after its turn, and waits for leave to use a tool: without it there is no next turn. */
function wakeUp(wait: (waiting: Waiting) => void): void {
  const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' }, tool_use_id: 'toolu_2' }
  wait({
    answer: (response) => writeFileSync(join(dir, 'woken.json'), JSON.stringify(response)),
    interrupt: () => undefined,
  })
  setTimeout(() => print({ type: 'control_request', request_id: 'woken', request }), 50)
}

/** A recorded turn, its init left out. */
function replay(file: string, { id }: Session): void {
  for (const line of lines(file).slice(1)) print({ ...line, session_id: id })
}

interface Ending {
  readonly wait: (waiting: Waiting) => void
  readonly resolve: () => void
}

function cutShort(one: Session, name: string, { wait, resolve }: Ending): void {
  endless(name === 'deaf')
  wait({
    answer: () => undefined,
    interrupt() {
      const { result: _, ...rest } = success
      const errors = ['[ede_diagnostic] result_type=user']
      print({ ...rest, session_id: one.id, is_error: true, subtype: 'error_during_execution', errors })
      resolve()
    },
  })
}

/** Wants to run the text as a command; the reply says what it was allowed. */
function ask(one: Session, command: string, { wait, resolve }: Ending): void {
  const input = { command, description: 'what it is for' }
  const request = { subtype: 'can_use_tool', tool_name: 'Bash', input, tool_use_id: 'toolu_1' }
  wait({
    answer(response) {
      const isAllowed = response['behavior'] === 'allow'
      const denials = isAllowed ? [] : [{ tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: input }]
      const result = isAllowed ? `ran ${JSON.stringify(response['updatedInput'])}` : `was told ${response['message']}`
      say(one, { ...success, session_id: one.id, result, permission_denials: denials }, 'ask')
      resolve()
    },
    interrupt: () => cutShort(one, 'endless', { wait: (waiting) => waiting.interrupt(), resolve }),
  })
  print({ type: 'control_request', request_id: randomUUID(), request })
}

function say(one: Session, result: Sample, name: string): void {
  const text = typeof result['result'] === 'string' && result['is_error'] !== true ? result['result'] : ''
  const pieces = name === 'stream' ? (text.match(/[^ ]* ?/gu) ?? []) : [text]
  const event = (content: Sample) =>
    print({ type: 'stream_event', event: content, session_id: one.id, parent_tool_use_id: null })
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  for (const piece of pieces.filter((one_) => one_ !== '')) {
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } })
  }
  const recent = { fake: { inputTokens: 10, outputTokens: 5, costUSD: 0.25 } }
  print({ ...result, model_usage_since_last_result: recent })
}

if (argv.includes('--version')) {
  process.stdout.write(`${fake.startsWith('without-') ? '2.2.0' : '2.1.325'} (Claude Code)\n`)
  process.exit(0)
}
appendFileSync(
  join(dir, 'starts.jsonl'),
  `${JSON.stringify({ pid: process.pid, argv, env: process.env, files: given() })}\n`,
)
if (argv.includes('--dangerously-skip-permissions') && process.env['IS_SANDBOX'] !== '1' && fake === 'root') {
  process.stderr.write(readFileSync(join(samples, 'root-refused.stderr')))
  process.exit(1)
}
// A version that does not know one of our flags: `without-input-format`.
const unknown = fake.startsWith('without-') ? `--${fake.slice('without-'.length)}` : undefined
if (unknown !== undefined && argv.includes(unknown)) {
  process.stderr.write(`error: unknown option '${unknown}'\n`)
  process.exit(1)
}
const opened = openSession()
if (opened === undefined) unknownSession()
else if (isStream) talk(opened)
else await answerOnce(opened)
