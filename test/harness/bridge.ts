/** A bridge for end-to-end tests: the real `bin/molecule connect` in its own process, with its own home folder. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { cleanEnvironment, endProcess, MOLECULE } from './command.ts'
import { recordedCgroups, removeCgroups } from './measures/cgroup.ts'
import type { PlatformUnderTest } from './platform.ts'
import { waitUntil } from './wait.ts'

export interface ExternalWorkspace {
  readonly id: string
  readonly auth_token: string
  readonly connect: string
  readonly status?: string
}

export interface BridgeUnderTest {
  readonly pid: number
  output(): string
  waitForOutput(pattern: RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Resolves with the exit code once the bridge has ended. */
  readonly ended: Promise<number | null>
}

export interface StartBridgeOptions {
  readonly url: string
  readonly workspace: ExternalWorkspace
  /** The bridge's MOLECULE_HOME. A restarted bridge gets the same one. */
  readonly home: string
  /** Unset = no backend flags: the bridge chooses. */
  readonly cmd?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Flags that provide the token in another way than `--token`. */
  readonly token?: readonly string[]
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

/** Ends the bridges of a test. */
const cleanups = new WeakMap<TestContext, (() => Promise<void>)[]>()

export function temporaryHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'molecule-bridge-'))
  t.after(async () => {
    // A bridge that still runs would write into the folder while it is removed.
    for (const end of cleanups.get(t) ?? []) await end()
    rmSync(home, { recursive: true, force: true })
  })
  return home
}

/** Starts a bridge with the exec backend and does not wait until it is connected. */
export function launchBridge(t: TestContext, options: StartBridgeOptions): BridgeUnderTest {
  const { url, workspace, home, cmd, token = ['--token', workspace.auth_token] } = options
  const backend = cmd === undefined ? [] : ['--backend', 'exec', '--backend-opt', `cmd=${cmd}`]
  const args = ['connect', workspace.id, '--api-url', url, ...token, ...backend, ...(options.args ?? [])]
  return spawnBridge(t, { command: MOLECULE, args, env: { MOLECULE_HOME: home, ...options.env }, cwd: home })
}

export interface SpawnBridgeOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export function spawnBridge(t: TestContext, { command, args, env, cwd }: SpawnBridgeOptions): BridgeUnderTest {
  const child = spawn(command, args, { cwd, env: cleanEnvironment(env), stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const ended = once(child, 'exit').then(() => child.exitCode)
  const end = async () => {
    await endProcess(child)
    await removeCgroups(recordedCgroups(env['MOLECULE_HOME'] ?? cwd))
  }
  cleanups.set(t, [...(cleanups.get(t) ?? []), end])
  t.after(end)
  return {
    pid: child.pid as number,
    output: () => output,
    waitForOutput: (pattern) =>
      waitUntil(
        () => pattern.test(output),
        () => `${pattern} in: ${output}`,
      ),
    kill: (signal) => void child.kill(signal),
    ended,
  }
}

/** Starts a bridge and waits until it takes messages. */
export async function startBridge(t: TestContext, options: StartBridgeOptions): Promise<BridgeUnderTest> {
  const bridge = launchBridge(t, options)
  await bridge.waitForOutput(/waiting for messages/)
  return bridge
}

/** The lines of a file to which the command of a test adds one each time it runs. Empty when there is no file. */
export function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
