/**
 * A fake hermes. Hermes cannot be installed for the tests, so the fake follows its documentation and the source of its
 * stream-json output (hermes_cli/stream_json.py), not a recording.
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
  readStdin,
  saveSession,
  scenario,
} from './fake-agent.ts'

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
else if (positionals[0] === 'chat' && flags['query-file'] === '-' && flags.format === 'stream-json') await answer()
else fail(2, 'Error: --format stream-json requires -q/--query.\n')

async function answer(): Promise<void> {
  const prompt = await readStdin()
  const before = flags.resume === undefined ? [] : loadSession(flags.resume)
  if (before === undefined || scenario === 'lost') {
    return fail(
      1,
      `Session not found: ${flags.resume}\nUse a session ID from a previous CLI run (hermes sessions list).\n`,
    )
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
      return end('')
    case 'endless':
      return endless()
    case 'flood':
      return flood(`${JSON.stringify({ type: 'text', text: 'x'.repeat(1000) })}\n`)
    case 'crash':
      return fail(1, 'Traceback (most recent call last):\nno such luck\n')
    case 'http-as-answer':
      // With a wrong model hermes exits with 0 and prints the error as its answer.
      return end('HTTP 400: {"detail":"model is not supported"}')
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
