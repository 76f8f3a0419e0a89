/**
 * A platform for end-to-end tests: the real `bin/molecule up` in a process of its own, on loopback and any free port,
 * in a temporary data folder. What a test needs of it is what a stranger has: a URL, a token file, curl's words.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Task } from '../../src/protocol/a2a.ts'

const MOLECULE = fileURLToPath(new URL('../../bin/molecule', import.meta.url))

export interface PlatformResponse {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came over the wire
  readonly body: any
}

export interface PlatformUnderTest {
  readonly url: string
  readonly dataDir: string
  readonly token: string
  readonly pid: number
  /** Everything printed so far, stdout and stderr. */
  output(): string
  request(method: string, path: string, body?: unknown): Promise<PlatformResponse>
  /** Makes an exec workspace and gives its id. */
  exec(cmd: string, more?: Record<string, unknown>): Promise<string>
  rpc(workspaceId: string, method: string, params: unknown): Promise<PlatformResponse>
  /** A blocking 1.0 send; the task it answers. */
  send(workspaceId: string, text: string, message?: Record<string, unknown>): Promise<Task>
  /** SIGTERM, and waits; gives the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Ends everything and removes the data folder. */
  dispose(): Promise<void>
}

export interface StartPlatformOptions {
  /** A folder that an earlier platform used; it is then not made and not removed. */
  readonly dataDir?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

let messages = 0

export async function startPlatform(options: StartPlatformOptions = {}): Promise<PlatformUnderTest> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'molecule-e2e-')))
  const child = spawn(MOLECULE, ['up', '--port', '0', '--data-dir', dataDir, ...(options.args ?? [])], {
    env: { ...cleanEnvironment(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const url = await waitForUrl(child, () => output)
  const token = (await readFile(join(dataDir, 'admin-token'), 'utf8')).trim()

  const request: PlatformUnderTest['request'] = async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const rpc: PlatformUnderTest['rpc'] = (workspaceId, method, params) =>
    request('POST', `/workspaces/${workspaceId}/a2a`, { jsonrpc: '2.0', id: 1, method, params })
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
    return child.exitCode
  }
  return {
    url,
    dataDir,
    token,
    pid: child.pid as number,
    output: () => output,
    request,
    async exec(cmd, more = {}) {
      const runtimeConfig = { cmd, ...(more['runtime_config'] as object) }
      const { status, body } = await request('POST', '/workspaces', {
        name: 'test',
        runtime: 'exec',
        ...more,
        runtime_config: runtimeConfig,
      })
      assert.equal(status, 201, JSON.stringify(body))
      return body.id
    },
    rpc,
    async send(workspaceId, text, message = {}) {
      const parts = [{ text }]
      const { body } = await rpc(workspaceId, 'SendMessage', {
        message: { messageId: `e2e-${++messages}-${process.pid}`, role: 'ROLE_USER', parts, ...message },
      })
      assert.ok(body.result?.task, JSON.stringify(body).slice(0, 500))
      return body.result.task
    },
    stop,
    async dispose() {
      await stop('SIGKILL')
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Without whatever this machine's user has set for a platform of his own: a test must not touch that one's store. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !/^(MOLECULE_|DATABASE_URL$)/.test(name))
  return Object.fromEntries(entries)
}

async function waitForUrl(child: ChildProcess, output: () => string): Promise<string> {
  for (;;) {
    const url = /runs at (http:\S+)/.exec(output())?.[1]
    if (url !== undefined) return url
    const end = child.exitCode ?? child.signalCode
    if (end !== null) throw new Error(`molecule up ended with ${end}: ${output()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** The text of a finished task's reply. */
export const replyText = (task: Task): string | undefined => task.artifacts?.at(-1)?.parts[0]?.text
/** The sentence that explains a failed task. */
export const reasonText = (task: Task): string => task.status.message?.parts[0]?.text ?? ''
