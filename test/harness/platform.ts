/**
 * A platform for end-to-end tests: the real `bin/molecule up` in its own process, on a temporary data folder.
 * Tests use only what any client has: the URL, the token file and HTTP.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { checkAnswer } from './check-answer.ts'
import { recordedCgroups, removeCgroups } from './measures/cgroup.ts'
import { type PlatformProcess, readToken, startPlatformProcess } from './platform-process.ts'
import { waitUntil } from './wait.ts'

export interface PlatformResponse {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly body: any
}

export interface PlatformUnderTest extends Pick<PlatformProcess, 'pid' | 'exited' | 'stop' | 'output'> {
  readonly url: string
  readonly dataDir: string
  readonly token: string
  request(method: string, path: string, body?: unknown): Promise<PlatformResponse>
  /** Creates an exec workspace; its id. */
  exec(cmd: string, more?: Record<string, unknown>): Promise<string>
  rpc(workspaceId: string, method: string, params: unknown): Promise<PlatformResponse>
  /** Sends a message with A2A 1.0 and waits for its result; the task. */
  send(workspaceId: string, text: string, message?: Record<string, unknown>): Promise<Task>
  /** Kills the platform and removes its data folder, unless the caller provided the folder. */
  dispose(): Promise<void>
}

export interface StartPlatformOptions {
  /** A folder of the caller, perhaps used by an earlier platform. `dispose` leaves it in place. */
  readonly dataDir?: string
  /** `postgres://...`; unset = the embedded store. */
  readonly database?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly wrapper?: readonly string[]
}

let messages = 0
export const newMessage = (text: string) => ({
  messageId: `e2e-${++messages}-${process.pid}`,
  role: 'ROLE_USER',
  parts: [{ text }],
})

/** Starts a platform and waits until it is ready. */
export async function startPlatform(options: StartPlatformOptions = {}): Promise<PlatformUnderTest> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'molecule-e2e-')))
  const { pid, ready, exited, stop, output, end } = startPlatformProcess({ ...options, dataDir })
  const url = await ready.catch(async (error: unknown) => {
    // A platform that is late would live on, and its folder with it.
    await end()
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    throw error
  })
  const token = readToken(dataDir)
  // Read now: a folder of the caller may be gone when the platform is disposed of.
  const cgroups = recordedCgroups(dataDir)

  const request: PlatformUnderTest['request'] = async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = {
      status: response.status,
      body: readJson(response.headers.get('content-type'), await response.text()),
    }
    checkAnswer(method, path, answer)
    return answer
  }
  const rpc: PlatformUnderTest['rpc'] = (workspaceId, method, params) =>
    request('POST', `/workspaces/${workspaceId}/a2a`, { jsonrpc: '2.0', id: 1, method, params })
  return {
    url,
    dataDir,
    token,
    pid,
    exited,
    stop,
    output,
    request,
    rpc,
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
    async send(workspaceId, text, message = {}) {
      const { body } = await rpc(workspaceId, 'SendMessage', { message: { ...newMessage(text), ...message } })
      assert.ok(body.result?.task, JSON.stringify(body).slice(0, 500))
      return body.result.task
    },
    async dispose() {
      await end()
      await removeCgroups(cgroups)
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** The JSON of an answer. Of a stream it is the first event: a stream that cannot begin has only one. */
export function readJson(contentType: string | null | undefined, text: string) {
  if (contentType?.startsWith('text/event-stream')) return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? 'null')
  return text !== '' && contentType?.includes('json') ? JSON.parse(text) : undefined
}

/** Starts a platform that is disposed of when the test ends. */
export async function startPlatformFor(t: TestContext, options?: StartPlatformOptions): Promise<PlatformUnderTest> {
  const platform = await startPlatform(options)
  t.after(() => platform.dispose())
  return platform
}

/** The body of a test that has a platform to itself. */
export const withPlatform =
  (body: (platform: PlatformUnderTest) => Promise<void>) =>
  async (t: TestContext): Promise<void> =>
    body(await startPlatformFor(t))

export const getWorkspace = async (platform: PlatformUnderTest, id: string) =>
  (await platform.request('GET', `/workspaces/${id}`)).body

/** Sends a message and does not wait for its result; the id of its task. */
export async function sendWithoutWaiting(platform: PlatformUnderTest, id: string, text: string): Promise<string> {
  const params = { message: newMessage(text), configuration: { returnImmediately: true } }
  const { body } = await platform.rpc(id, 'SendMessage', params)
  assert.ok(body.result?.task, JSON.stringify(body))
  return body.result.task.id
}

export async function getTask(platform: PlatformUnderTest, id: string, taskId: string) {
  return (await platform.rpc(id, 'GetTask', { id: taskId })).body.result
}

/** Waits until the task is in a final state; the task. */
export async function waitForFinalTask(platform: PlatformUnderTest, id: string, taskId: string) {
  let task = await getTask(platform, id, taskId)
  await waitUntil(
    async () => {
      task = await getTask(platform, id, taskId)
      return /COMPLETED|FAILED|CANCELED|REJECTED/.test(task.status.state)
    },
    () => `a final state of ${JSON.stringify(task)}`,
  )
  return task
}

/** The text of a finished task's reply. */
export const replyText = (task: Task): string | undefined => task.artifacts?.at(-1)?.parts[0]?.text
/** The sentence that explains a failed task. */
export const reasonText = (task: Task): string => task.status.message?.parts[0]?.text ?? ''
