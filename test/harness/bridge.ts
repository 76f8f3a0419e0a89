/** A bridge for end-to-end tests: the real `bin/molecule connect` in a process of its own, in a home of its own. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type PlatformUnderTest, type StartPlatformOptions, startPlatform } from './platform.ts'

export const MOLECULE = fileURLToPath(new URL('../../bin/molecule', import.meta.url))

export interface ExternalWorkspace {
  readonly id: string
  readonly auth_token: string
  readonly connect: string
}

export interface BridgeUnderTest {
  readonly pid: number
  output(): string
  /** Resolves when the words have been printed. */
  waitForOutput(words: RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** The exit code, once it has ended. */
  readonly ended: Promise<number | null>
}

export interface StartBridgeOptions {
  readonly url: string
  readonly workspace: ExternalWorkspace
  /** Its MOLECULE_HOME; the same after a restart. */
  readonly home: string
  readonly cmd?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Where the token comes from, if not the flag. */
  readonly token?: readonly string[]
}

export async function startPlatformFor(t: TestContext, options?: StartPlatformOptions): Promise<PlatformUnderTest> {
  const platform = await startPlatform(options)
  t.after(() => platform.dispose())
  return platform
}

export async function createExternalWorkspace(
  platform: PlatformUnderTest,
  more: object = {},
): Promise<ExternalWorkspace> {
  const wanted = { name: 'Laptop', runtime: 'external', ...more }
  const { status, body } = await platform.request('POST', '/workspaces', wanted)
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

export function temporaryHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'molecule-bridge-'))
  t.after(async () => {
    // A bridge that still runs would go on writing into it.
    for (const end of endings.get(t) ?? []) await end()
    rmSync(home, { recursive: true, force: true })
  })
  return home
}

/** How the bridges of a test are ended. */
const endings = new WeakMap<TestContext, (() => Promise<void>)[]>()

/** Starts a bridge with the exec backend and does not wait for it. */
export function launchBridge(t: TestContext, start: StartBridgeOptions): BridgeUnderTest {
  const { workspace, home, cmd, args = [], token = ['--token', workspace.auth_token] } = start
  const backend = cmd === undefined ? [] : ['--backend', 'exec', '--backend-opt', `cmd=${cmd}`]
  const words = ['connect', workspace.id, '--api-url', start.url, ...token, ...backend, ...args]
  return spawnBridge(t, { command: MOLECULE, words, env: { MOLECULE_HOME: home, ...start.env }, cwd: home })
}

export interface SpawnBridgeOptions {
  readonly command: string
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export function spawnBridge(t: TestContext, { command, words, env, cwd }: SpawnBridgeOptions): BridgeUnderTest {
  const own = Object.entries(process.env).filter(([name]) => !/^(MOLECULE_|DATABASE_URL$)/.test(name))
  const child = spawn(command, words, {
    cwd,
    env: { ...Object.fromEntries(own), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const ended = once(child, 'exit').then(() => child.exitCode)
  const end = async () => {
    // A stopped process does not hear of anything but this.
    child.kill('SIGKILL')
    await ended
  }
  endings.set(t, [...(endings.get(t) ?? []), end])
  t.after(end)
  return {
    pid: child.pid as number,
    output: () => output,
    waitForOutput: (expected) =>
      until(
        () => expected.test(output),
        () => `${expected} in: ${output}`,
      ),
    kill: (signal) => void child.kill(signal),
    ended,
  }
}

/** Starts one and waits until it takes messages. */
export async function startBridge(t: TestContext, start: StartBridgeOptions): Promise<BridgeUnderTest> {
  const bridge = launchBridge(t, start)
  await bridge.waitForOutput(/waiting for messages/)
  return bridge
}

/** Looks again and again; the runner's own time limit ends what never comes. */
export async function until(true_: () => boolean | Promise<boolean>, what: () => string = () => ''): Promise<void> {
  const deadlineMs = performance.now() + 100_000
  while (!(await true_())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came: ${what()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A zombie that nobody waits for is dead. */
export function isAlive(pid: string | undefined): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** The lines of a file; a command of a test adds one each time it runs. */
export function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

export const getWorkspace = async (platform: PlatformUnderTest, id: string) =>
  (await platform.request('GET', `/workspaces/${id}`)).body

/** Sends without waiting; the task's id. */
export async function sendWithoutWaiting(platform: PlatformUnderTest, id: string, text: string): Promise<string> {
  const message = { messageId: `post-${process.pid}-${++posts}`, role: 'ROLE_USER', parts: [{ text }] }
  const { body } = await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
  assert.ok(body.result?.task, JSON.stringify(body))
  return body.result.task.id
}

let posts = 0

export async function getTask(platform: PlatformUnderTest, id: string, taskId: string) {
  return (await platform.rpc(id, 'GetTask', { id: taskId })).body.result
}

/** Waits until the task is final and gives it. */
export async function waitForFinalTask(platform: PlatformUnderTest, id: string, taskId: string) {
  let task = await getTask(platform, id, taskId)
  const over = /COMPLETED|FAILED|CANCELED|REJECTED/
  await until(
    async () => {
      task = await getTask(platform, id, taskId)
      return over.test(task.status.state)
    },
    () => JSON.stringify(task),
  )
  return task
}
