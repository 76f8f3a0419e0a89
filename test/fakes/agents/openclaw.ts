/**
 * A fake openclaw 2026.9.6: `agent --json` and `gateway run` as recorded from the real one. A state folder has one owner:
 * a gateway, or one `--local` run. The fake keeps its owner in a file of its home, and the program reaches the gateway
 * through that home instead of a WebSocket.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  endless,
  flood,
  HOME,
  loadSession,
  print,
  printError,
  readFlags,
  readSample,
  saveSession,
  scenario,
} from './fake-agent.ts'
import { runGateway } from './openclaw-gateway.ts'

const { values: flags, positionals } = readFlags({
  agent: { type: 'string' },
  json: { type: 'boolean' },
  local: { type: 'boolean' },
  'message-file': { type: 'string' },
  model: { type: 'string' },
  'session-key': { type: 'string' },
  timeout: { type: 'string' },
  version: { type: 'boolean' },
})

const path = flags['message-file'] ?? ''
const sessionKey = flags['session-key'] ?? ''
const sessionId = sessionKey.replace('agent:main:explicit:', '')
const owner = join(HOME, 'owner')

if (flags.version) print('OpenClaw 2026.9.6 (eb377ac)\n')
else if (positionals[0] === 'gateway') await runGateway(owner)
else if (positionals[0] !== 'agent' || !flags.json || flags.timeout === undefined) refuse('unknown command')
// Like the real openclaw, does not accept `-` for stdin.
else if (!existsSync(path)) refuse(`Message file not found: ${path}`)
else if (flags.local) await runLocal(readFileSync(path, 'utf8'))
else if (readOwner() === 'gateway') await answer(readFileSync(path, 'utf8'))
else refuse('Gateway not reachable at ws://127.0.0.1:18789 (ECONNREFUSED).\nStart it with `openclaw gateway run`.')

/** Takes the folder for the run. The real one needs seconds before it answers. */
async function runLocal(prompt: string): Promise<void> {
  const before = readOwner()
  if (before === 'gateway') {
    print(readSample('openclaw/local-refused.json'))
    process.exitCode = 1
    return
  }
  if (before !== undefined) return refuse('failed to acquire gateway state ownership')
  writeFileSync(owner, String(process.pid), { flag: 'wx' })
  try {
    if (scenario === 'echo') await delay(100)
    await answer(prompt)
  } finally {
    rmSync(owner, { force: true })
  }
}

/** `gateway`, or the process of another `--local` run that is alive. */
function readOwner(): string | undefined {
  if (!existsSync(owner)) return undefined
  const text = readFileSync(owner, 'utf8')
  const pid = Number(/\d+/.exec(text)?.[0])
  if (existsSync(`/proc/${pid}`)) return text.startsWith('gateway') ? 'gateway' : text
  rmSync(owner, { force: true })
  return undefined
}

async function answer(prompt: string): Promise<void> {
  printError('[agent/embedded] tool-search: cataloged 57 tools behind compact prompt surface\n')
  saveSession(sessionId, [...(loadSession(sessionId) ?? []), prompt])
  switch (scenario) {
    case 'echo':
    case 'closed':
      return reply([prompt])
    case 'count':
      return reply([`n=${loadSession(sessionId)?.length} ${flags.local ? 'local' : 'by gateway'}`])
    case 'parts':
      return reply(['one', 'two'])
    case 'tool':
      return reply(['done'], ['exec'])
    case 'empty':
    case 'own-timeout':
      print(readSample(`openclaw/${scenario}.json`))
      process.exitCode = 1
      return
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
  const recorded = JSON.parse(readSample(`openclaw/${flags.local ? 'agent-json' : 'agent-by-gateway'}.json`))
  const turn = recorded.result ?? recorded
  const { agentMeta } = turn.meta
  turn.payloads = texts.map((text) => ({ text, mediaUrl: null }))
  // The real one has its own id for the session, besides the key.
  Object.assign(agentMeta, { sessionId: `own-${sessionId}`, sessionFile: sessionKey })
  Object.assign(agentMeta.terminalReceipt, { successfulToolNames })
  print(`${JSON.stringify(recorded, null, 2)}\n`)
}

function refuse(message: string): void {
  print(`${JSON.stringify({ ok: false, error: { type: 'cli_error', message } }, null, 2)}\n`)
  process.exitCode = 1
}
