/**
 * A delegation, from the call to the first instruction of the child's command: the MCP tool `delegate_task` over HTTP,
 * against the bare request that `a2a delegate` sends, and against the whole `a2a delegate`, which starts a process. All
 * three delegate from the same running turn, with its token, in alternating rounds. A tree takes 50 turns, so every few
 * rounds another turn delegates.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Task } from '../src/protocol/a2a.ts'
import { callTool, connect } from '../test/fakes/mcp/team-client.ts'
import { runCommand } from '../test/harness/command.ts'
import { replyText, sendWithoutWaiting, startPlatform } from '../test/harness/platform.ts'
import { waitUntil } from '../test/harness/wait.ts'
import { median, percentile } from './measure.ts'

const TREES = Number(process.argv[2] ?? 8)
/** Three delegations each: with the root a tree has 46 turns. */
const ROUNDS_EACH = 15
const ADDED_MS_MAX = 5
/** What a delegation does after its answer must not count for the next one. */
const PAUSE_MS = 20

const wallMs = (): number => performance.timeOrigin + performance.now()

const folder = mkdtempSync(join(tmpdir(), 'molecule-bench-'))
const tokenFile = join(folder, 'token')
const platform = await startPlatform()
const times: Record<string, number[]> = { mcp: [], bare: [], command: [] }
try {
  const root = await platform.exec(`printf '%s' "$MOLECULE_WORKSPACE_TOKEN" > ${tokenFile}; exec sleep 600`, {
    name: 'root',
    runtime_config: { pass_meta: 'true', timeout: '600s' },
  })
  const child = await platform.exec('date +%s%N', { name: 'child' })
  for (let tree = 0; tree < TREES; tree++) await measureTree(root, child, tree === 0)
} finally {
  await platform.dispose()
  rmSync(folder, { recursive: true })
}

const print = (name: string, key: string) => {
  const values = times[key] ?? []
  console.log(`${name.padEnd(32)} p50 ${median(values).toFixed(2)} ms  p95 ${percentile(values, 95).toFixed(2)} ms`)
}
print('delegate_task over HTTP', 'mcp')
print('the request of a2a delegate', 'bare')
print('a2a delegate, with its process', 'command')
const [mcp, bare] = [median(times['mcp'] ?? []), median(times['bare'] ?? [])]
const isMet = mcp - bare <= ADDED_MS_MAX
console.log(
  `the tool adds ${(mcp - bare).toFixed(2)} ms at the median (at most ${ADDED_MS_MAX}), ratio ${(mcp / bare).toFixed(2)}${isMet ? '' : '  MISSED'}`,
)
if (!isMet) process.exitCode = 1

/** The times of the first tree are left out: nothing is warm yet. */
async function measureTree(root: string, child: string, isWarmUp: boolean): Promise<void> {
  rmSync(tokenFile, { force: true })
  const taskId = await sendWithoutWaiting(platform, root, 'delegate')
  const token = () => readFileSync(tokenFile, { encoding: 'utf8', flag: 'a+' })
  await waitUntil(() => token() !== '')
  const env = {
    MOLECULE_API_URL: platform.url,
    MOLECULE_WORKSPACE_ID: root,
    MOLECULE_WORKSPACE_TOKEN: token(),
    PATH: process.env['PATH'] ?? '',
  }
  const client = await connect('http', env)
  const headers = { Authorization: `Bearer ${token()}`, 'Content-Type': 'application/json' }
  const contenders: Readonly<Record<string, (text: string) => Promise<string>>> = {
    async mcp(text) {
      return (await callTool(client, { tool: 'delegate_task', arguments: { workspace_id: child, task: text } })).text
    },
    async bare(text) {
      const message = { messageId: `bench-${text}`, role: 'ROLE_USER', parts: [{ text }] }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
      const response = await fetch(`${platform.url}/workspaces/${child}/a2a`, { method: 'POST', headers, body })
      const { result } = (await response.json()) as { readonly result: { readonly task: Task } }
      return replyText(result.task) ?? ''
    },
    async command(text) {
      return (await runCommand(['delegate', child, text], { env, program: 'a2a' })).out
    },
  }
  const names = Object.keys(contenders)
  for (let round = 0; round < ROUNDS_EACH; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length] as string
      await delay(PAUSE_MS)
      const calledMs = wallMs()
      const answer = await contenders[name]?.(`${taskId} ${round} ${turn}`)
      const startedMs = Number(answer?.trim()) / 1e6
      if (!(startedMs > calledMs)) throw new Error(`${name} gave no time: ${answer}`)
      if (!isWarmUp) times[name]?.push(startedMs - calledMs)
    }
  }
  await client.close()
  await platform.rpc(root, 'CancelTask', { id: taskId })
}
