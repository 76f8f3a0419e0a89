/**
 * A fake opencode 1.18.33: `run --format json` as recorded from the real one, and `acp` on the agent side of the published
 * SDK.
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

const { values: flags, positionals } = readFlags({
  auto: { type: 'boolean' },
  continue: { type: 'boolean', short: 'c' },
  format: { type: 'string' },
  model: { type: 'string', short: 'm' },
  session: { type: 'string', short: 's' },
  version: { type: 'boolean' },
})

const [command] = positionals
if (flags.version) print('1.18.33\n')
// A version without the command takes `acp` for a folder and exits with 0.
else if (command === 'acp' && scenario === 'no-acp') printError('Error: Failed to change directory to /somewhere/acp\n')
else if (command === 'acp') acpAgent('opencode')
else if (command === 'run' && positionals.length === 1 && flags.format === 'json') await answer()
else fail('unknown command\n')

async function answer(): Promise<void> {
  const prompt = await readStdin()
  const before = flags.session === undefined ? [] : loadSession(flags.session)
  if (before === undefined || scenario === 'lost') return fail(readSample('opencode/unknown-session.stderr'))
  const sessionID = flags.session ?? `ses_${randomUUID().replaceAll('-', '')}`
  saveSession(sessionID, [...before, prompt])
  await play(prompt, sessionID)
}

async function play(prompt: string, sessionID: string): Promise<void> {
  const [start, text, finish] = readSampleLines('opencode/success.jsonl') as [object, { part: object }, object]
  const sendText = (content: string) => line({ ...text, sessionID, part: { ...text.part, text: content } })
  if (!scenario.startsWith('error')) line({ ...start, sessionID })
  switch (scenario) {
    case 'no-acp':
    case 'echo':
      sendText(prompt)
      break
    case 'stream':
      // The real opencode prints one event per part of the answer, each with its complete text.
      await inPieces(prompt, sendText)
      break
    case 'tool':
      return replay('mcp-tool', sessionID)
    case 'denied':
      printError('! permission requested: bash (touch touched); auto-rejecting\n')
      return replay('denied', sessionID)
    case 'empty':
      break
    case 'endless':
      return endless()
    case 'flood':
      return flood(`${JSON.stringify({ ...text, part: { ...text.part, text: 'x'.repeat(1000) } })}\n`)
    case 'crash':
      return fail('no such luck\n')
    default:
      line(readSampleLines(`opencode/${scenario}.jsonl`)[0] ?? {})
      process.exitCode = 1
      return
  }
  line({ ...finish, sessionID })
}

function replay(name: string, sessionID: string): void {
  for (const event of readSampleLines(`opencode/${name}.jsonl`)) line({ ...event, sessionID })
}

function line(value: object): void {
  print(`${JSON.stringify(value)}\n`)
}

function fail(stderr: string): void {
  printError(stderr)
  process.exitCode = 1
}
