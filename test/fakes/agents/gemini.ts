/**
 * A fake gemini 0.61.0: flags, stream-json and errors as recorded from the real one, and `--acp` on the agent side of the
 * published SDK. As in the real gemini, a session belongs to the folder in which it began.
 */
import { randomUUID } from 'node:crypto'
import { acpAgent } from './acp-agent.ts'
import {
  endless,
  flood,
  inPieces,
  loadSession,
  print,
  printError,
  readFlags,
  readSample,
  readSampleLines,
  readStdin,
  saveSession,
  scenario,
} from './fake-agent.ts'

const { values: flags } = readFlags({
  acp: { type: 'boolean' },
  'allowed-tools': { type: 'string', multiple: true },
  'approval-mode': { type: 'string' },
  model: { type: 'string', short: 'm' },
  'output-format': { type: 'string' },
  resume: { type: 'string' },
  'skip-trust': { type: 'boolean' },
  version: { type: 'boolean' },
})

if (flags.version) print(scenario.startsWith('without-') ? '0.70.0\n' : '0.61.0\n')
else if (flags.acp) acpAgent('gemini')
else await answer()

async function answer(): Promise<void> {
  if (!flags['skip-trust']) return fail(55, readSample('gemini/untrusted-folder.stderr'))
  if (flags['output-format'] !== 'stream-json') return fail(1, 'this fake supports only stream-json\n')
  const prompt = await readStdin()
  const id = flags.resume ?? randomUUID()
  const before = flags.resume === undefined ? [] : loadSession(folderKey(id))
  if (before === undefined || scenario === 'lost') return fail(42, readSample('gemini/unknown-session-a.stderr'))
  printError('YOLO mode is enabled. All tool calls will be automatically approved.\n')
  await play(prompt, id)
  saveSession(folderKey(id), [...before, prompt])
}

async function play(prompt: string, id: string): Promise<void> {
  const [init, , , delta, result] = readSampleLines('gemini/stream-json-success.jsonl')
  const sendText = (content: string) => line({ ...delta, content })
  line({ ...init, session_id: id })
  switch (scenario.startsWith('without-') ? 'echo' : scenario) {
    case 'echo':
    case 'stream':
      await inPieces(prompt, sendText)
      break
    case 'tool':
      for (const event of readSampleLines('gemini/stream-json-tool.jsonl').slice(1, -1)) line(event)
      break
    case 'argv':
      sendText(JSON.stringify(process.argv.slice(2)))
      break
    case 'empty':
      break
    case 'endless':
      return endless()
    case 'flood':
      return flood(`${JSON.stringify({ ...delta, content: 'x'.repeat(1000) })}\n`)
    case 'crash':
      return fail(1, 'no such luck\n')
    default:
      return failAsRecorded()
  }
  line({ ...result })
}

/** Scenarios such as `error-401`: the recorded end, and the status modulo 256 as exit code. */
function failAsRecorded(): void {
  line(readSampleLines(`gemini/stream-json-${scenario}.jsonl`).at(-1) ?? {})
  fail(Number(scenario.slice('error-'.length)) % 256, readSample('gemini/error-401.stderr').split('\n{')[0] ?? '')
}

function line(value: object): void {
  print(`${JSON.stringify(value)}\n`)
}

function fail(exitCode: number, stderr: string): void {
  printError(stderr)
  process.exitCode = exitCode
}

function folderKey(id: string): string {
  return `${Buffer.from(process.cwd()).toString('hex')}-${id}`
}
