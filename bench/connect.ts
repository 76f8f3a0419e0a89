/**
 * What a bridge adds, in three comparisons: the time from sending a message to the first instruction of the command on
 * an idle bridge; one message through platform and bridge against a bare spawn; `molecule --help` against the bare
 * start of Node. Each pair alternates in the same run. The peer of the first is a bridge that polls once a second,
 * whose median is half a second.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { cleanEnvironment, MOLECULE } from '../test/harness/command.ts'
import { type PlatformUnderTest, replyText, startPlatform } from '../test/harness/platform.ts'
import { alternate, median, percentile } from './measure.ts'

const ROUNDS = 150
const WARM_UP_ROUNDS = 30
const START_MS_MAX = 15
const ADDED_MS_MAX = 15
const HELP_ROUNDS = 20
const HELP_RATIO_MAX = 2
/** Long enough for the bridge's next call to wait at the platform again. */
const IDLE_MS = 30
const TEXT = 'hello molecule'

function runOutput(command: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (chunk) => (text += chunk))
    child.on('error', reject)
    child.on('close', () => resolve(text))
    child.stdin.end(input)
  })
}

const wallMs = (): number => performance.timeOrigin + performance.now()

interface BenchmarkContext {
  readonly platform: PlatformUnderTest
  readonly home: string
  readonly close: (() => Promise<unknown>)[]
}

/** Starts a bridge that runs the command for a new external workspace; resolves when it waits for messages. */
async function startBridge({ platform, home, close }: BenchmarkContext, cmd: string): Promise<string> {
  const { body } = await platform.request('POST', '/workspaces', { name: 'bench', runtime: 'external' })
  const options = ['--api-url', platform.url, '--backend', 'exec', '--backend-opt', `cmd=${cmd}`]
  const env = cleanEnvironment({
    MOLECULE_HOME: home,
    MOLECULE_WORKSPACE_TOKEN: body.auth_token,
    MOLECULE_CGROUPS: 'off',
  })
  const child = spawn(MOLECULE, ['connect', body.id, ...options], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  close.push(() => {
    child.kill('SIGTERM')
    return ended
  })
  await new Promise<void>((resolve, reject) => {
    let printed = ''
    child.stdout.on('data', (chunk) => {
      printed += chunk
      if (printed.includes('waiting for messages')) resolve()
    })
    child.once('exit', () => reject(new Error(`the bridge ended before it waited for messages: ${printed}`)))
  })
  return body.id
}

async function startTimes({ platform }: BenchmarkContext, id: string): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS + WARM_UP_ROUNDS; round++) {
    await delay(IDLE_MS)
    const sentMs = wallMs()
    const startedMs = Number(replyText(await platform.send(id, TEXT))) / 1e6
    if (round >= WARM_UP_ROUNDS) times.push(startedMs - sentMs)
  }
  return times
}

const printTimes = (name: string, values: readonly number[]) =>
  console.log(`${name.padEnd(38)} p50 ${median(values).toFixed(2)} ms  p95 ${percentile(values, 95).toFixed(2)} ms`)

function printGoal(text: string, isMet: boolean): void {
  console.log(`${text} ${isMet ? '' : '  MISSED'}`)
  if (!isMet) process.exitCode = 1
}

const context: BenchmarkContext = {
  platform: await startPlatform(),
  home: mkdtempSync(join(tmpdir(), 'molecule-bench-')),
  close: [],
}
try {
  const timestamping = await startBridge(context, 'date +%s%N')
  const starts = await startTimes(context, timestamping)
  printTimes('message sent to first instruction', starts)
  printGoal(
    `at most ${START_MS_MAX} ms at the median; one poll per second: 500 ms, ratio ${(median(starts) / 500).toFixed(3)}`,
    median(starts) <= START_MS_MAX,
  )

  const echo = await startBridge(context, 'cat')
  const pair = {
    bridge: () => context.platform.send(echo, TEXT),
    bare: () => runOutput('/bin/sh', ['-c', 'cat'], TEXT),
  }
  await alternate({ rounds: WARM_UP_ROUNDS, contenders: pair })
  const { bridge = [], bare = [] } = await alternate({ rounds: ROUNDS, contenders: pair })
  printTimes('bare spawn of cat', bare)
  printTimes('through platform and bridge', bridge)
  const addedMs = median(bridge) - median(bare)
  const ratio = (median(bridge) / median(bare)).toFixed(2)
  printGoal(
    `added at the median ${addedMs.toFixed(2)} ms (at most ${ADDED_MS_MAX}), ratio ${ratio}`,
    addedMs <= ADDED_MS_MAX,
  )

  const starting = { help: () => runOutput(MOLECULE, ['--help']), node: () => runOutput('node', ['-e', '0']) }
  await alternate({ rounds: 3, contenders: starting })
  const { help = [], node = [] } = await alternate({ rounds: HELP_ROUNDS, contenders: starting })
  printTimes('node -e 0', node)
  printTimes('molecule --help', help)
  const helpRatio = median(help) / median(node)
  printGoal(`ratio ${helpRatio.toFixed(2)} (under ${HELP_RATIO_MAX})`, helpRatio < HELP_RATIO_MAX)
} finally {
  await Promise.all(context.close.map((end) => end()))
  await context.platform.dispose()
  rmSync(context.home, { recursive: true, force: true })
}
