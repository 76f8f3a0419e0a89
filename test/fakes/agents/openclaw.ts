/** A fake openclaw 2026.9.6: `agent --local --json` as recorded from the real one, including its log lines. */
import { existsSync, readFileSync } from 'node:fs'
import {
  endless,
  flood,
  loadSession,
  print,
  printError,
  readFlags,
  readSample,
  saveSession,
  scenario,
} from './fake-agent.ts'

const { values: flags, positionals } = readFlags({
  agent: { type: 'string' },
  json: { type: 'boolean' },
  local: { type: 'boolean' },
  'message-file': { type: 'string' },
  model: { type: 'string' },
  'session-id': { type: 'string' },
  version: { type: 'boolean' },
})

const path = flags['message-file'] ?? ''
const sessionId = flags['session-id'] ?? ''
if (flags.version) print('OpenClaw 2026.9.6 (eb377ac)\n')
else if (positionals[0] !== 'agent' || !flags.local || !flags.json) refuse('unknown command')
// Like the real openclaw, does not accept `-` for stdin.
else if (!existsSync(path)) refuse(`Message file not found: ${path}`)
else await answer(readFileSync(path, 'utf8'))

async function answer(prompt: string): Promise<void> {
  printError('[agent/embedded] tool-search: cataloged 57 tools behind compact prompt surface\n')
  saveSession(sessionId, [...(loadSession(sessionId) ?? []), prompt])
  switch (scenario) {
    case 'echo':
      return reply([prompt])
    case 'parts':
      return reply(['one', 'two'])
    case 'tool':
      return reply(['done'], ['exec'])
    case 'empty':
      return reply([])
    case 'endless':
      return endless()
    case 'flood':
      return flood(`  "${'x'.repeat(1000)}",\n`)
    case 'crash':
      printError('no such luck\n')
      process.exitCode = 1
      return
    default:
      print(readSample(`openclaw/${scenario}.json`))
      process.exitCode = 1
  }
}

function reply(texts: readonly string[], successfulToolNames: readonly string[] = []): void {
  const recorded = JSON.parse(readSample('openclaw/agent-json.json'))
  const { agentMeta } = recorded.meta
  recorded.payloads = texts.map((text) => ({ text, mediaUrl: null }))
  Object.assign(agentMeta, { sessionId })
  Object.assign(agentMeta.terminalReceipt, { successfulToolNames })
  print(`${JSON.stringify(recorded, null, 2)}\n`)
}

function refuse(message: string): void {
  print(`${JSON.stringify({ ok: false, error: { type: 'cli_error', message } }, null, 2)}\n`)
  process.exitCode = 1
}
