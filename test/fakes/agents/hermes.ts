/**
 * A fake hermes 0.21.5: `chat --format stream-json` as recorded from the real one, and `acp` (hermes-acp.ts). Hermes
 * cannot be installed for the tests: it is in no registry.
 */
import { randomBytes } from 'node:crypto'
import {
  endless,
  flood,
  inPieces,
  loadSession,
  print,
  printError,
  readFlags,
  readSample,
  readStdin,
  saveSession,
  scenario,
} from './fake-agent.ts'
import { hermesAcp } from './hermes-acp.ts'

const { values: flags, positionals } = readFlags({
  format: { type: 'string' },
  in: { type: 'string' },
  'max-turns': { type: 'string' },
  model: { type: 'string', short: 'm' },
  oneshot: { type: 'boolean' },
  'query-file': { type: 'string' },
  resume: { type: 'string', short: 'r' },
  source: { type: 'string' },
  version: { type: 'boolean', short: 'V' },
  yolo: { type: 'boolean' },
})

const tokens = { input: 10, output: 5, total: 15, cache_read: 0, cache_write: 0 }

if (flags.version) print('Hermes Agent v0.21.5\n')
// An older hermes knows no such command.
else if (positionals[0] === 'acp' && scenario === 'no-acp')
  fail(2, "hermes: error: invalid choice: 'acp' (choose from --help)\n")
else if (positionals[0] === 'acp') hermesAcp()
else if (positionals[0] === 'chat' && flags['query-file'] === '-' && flags.format === 'stream-json') await answer()
else fail(2, 'Error: --format stream-json requires -q/--query.\n')

async function answer(): Promise<void> {
  const prompt = await readStdin()
  const before = flags.resume === undefined ? [] : loadSession(flags.resume)
  if (scenario === 'not-configured') {
    print(readSample('hermes/not-configured.jsonl'))
    return fail(1, '')
  }
  if (before === undefined || (scenario === 'lost' && flags.resume !== undefined)) {
    print(readSample('hermes/unknown-session.jsonl').replaceAll(/\d{8}_\d{6}_[0-9a-f]{6}/g, flags.resume ?? ''))
    return fail(1, readSample('hermes/unknown-session.stderr'))
  }
  const id = flags.resume ?? `20261115_120000_${randomBytes(3).toString('hex')}`
  saveSession(id, [...before, prompt])
  await play(prompt, id)
}

async function play(prompt: string, id: string): Promise<void> {
  line({ type: 'system', subtype: 'init', model: 'fake', session_id: id })
  const sendText = (text: string) => line({ type: 'text', text })
  const end = (text: string, more: object = {}) =>
    line({ type: 'result', session_id: id, exit_code: 0, text, tokens, duration_ms: 1, ...more })
  switch (scenario) {
    case 'echo':
    case 'lost':
    case 'no-acp':
      await inPieces(prompt, sendText)
      return end(prompt)
    case 'unstreamed':
      return end(prompt)
    case 'tool':
      line({ type: 'tool_use', name: 'terminal', tool_call_id: 'c1', input: { command: 'echo hello' } })
      line({
        type: 'tool_result',
        name: 'terminal',
        tool_call_id: 'c1',
        output: 'hello',
        duration_ms: 3,
        is_error: false,
      })
      sendText('done.')
      return end('done.')
    case 'empty':
      return end('⚠️ No reply: the model returned an empty response.')
    case 'endless':
      return endless()
    case 'flood':
      return flood(`${JSON.stringify({ type: 'text', text: 'x'.repeat(1000) })}\n`)
    case 'crash':
      return fail(1, 'Traceback (most recent call last):\nno such luck\n')
    case 'http-as-answer':
      // With a wrong model hermes exits with 0 and prints the error as its answer.
      return end('HTTP 400: {"detail":"model is not supported"}', { tokens: { input: 0, output: 0 } })
    default:
      end('', { exit_code: 1, error: `HTTP ${scenario.slice('error-'.length)}: fake, retry after 7 seconds` })
      process.exitCode = 1
  }
}

function line(value: object): void {
  print(`${JSON.stringify({ ...value, timestamp: 1 })}\n`)
}

function fail(exitCode: number, stderr: string): void {
  printError(stderr)
  process.exitCode = exitCode
}
