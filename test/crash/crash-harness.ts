/**
 * A data folder and a database that outlive the platforms started on them, an exec command that records each of its
 * runs, and a view of the stored result. The test removes everything at its end.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { markedProcesses } from '../harness/live-processes.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { readHostId } from '../harness/platform-process.ts'
import { openDatabase } from './database.ts'

export interface CrashHarness {
  readonly folder: string
  /** The running platform, or the last one. */
  readonly platform: PlatformUnderTest
  /** Starts a platform on the same data. Once it is ready, no process of an earlier one may be alive. */
  start(env?: Readonly<Record<string, string>>): Promise<PlatformUnderTest>
  kill(): Promise<void>
  /** Waits until the platform has ended by itself. */
  waitForExit(): Promise<void>
  /** The stdin of each run that started, in order. */
  runs(): Promise<string[]>
  /** Stops the platform and returns every stored message. */
  end(): Promise<StoredResult[]>
}

export interface StoredResult {
  readonly key: string
  readonly taskId: string
  readonly state: string
  readonly failures: number
  readonly losses: number
  /** Replies in the log; the message row can hold only one. */
  readonly replies: number
}

export async function createCrashHarness(t: TestContext, database?: string): Promise<CrashHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'molecule-crash-'))
  const dataDir = join(folder, 'data')
  await mkdir(dataDir, { mode: 0o700 })
  const args = database === undefined ? [] : ['--database', database]
  let platform: PlatformUnderTest | undefined
  const deadMarks = new Set<string>()
  t.after(async () => {
    await platform?.dispose()
    await rm(folder, { recursive: true, force: true })
  })
  const current = (): PlatformUnderTest => {
    assert.ok(platform, 'no platform was started yet')
    return platform
  }
  const recordMarks = () => {
    for (const { mark } of markedProcesses(`${readHostId(dataDir)}:`)) deadMarks.add(mark)
  }
  return {
    folder,
    get platform() {
      return current()
    },
    async start(env = {}) {
      platform = await startPlatform({ dataDir, args, env })
      const left = markedProcesses(`${readHostId(dataDir)}:`).filter(({ mark }) => deadMarks.has(mark))
      assert.deepEqual(left, [], 'RE-5 a process of an earlier platform is alive')
      return platform
    },
    async kill() {
      await current().stop('SIGKILL')
      recordMarks()
    },
    async waitForExit() {
      await current().exited
      recordMarks()
    },
    runs: async () => (await readFile(join(folder, 'runs'), 'utf8').catch(() => '')).split('\n').filter(Boolean),
    async end() {
      assert.equal(await current().stop(), 0)
      assert.deepEqual(markedProcesses(`${readHostId(dataDir)}:`), [], 'RE-5 a process is alive after the end')
      return await readStoredResults({ dataDir, database })
    },
  }
}

async function readStoredResults(place: { dataDir: string; database: string | undefined }): Promise<StoredResult[]> {
  const stored = await openDatabase(place)
  try {
    const loads = await stored.rows('select running, waiting, suspended from workspace_load')
    for (const load of loads) {
      assert.deepEqual(Object.values(load).map(Number), [0, 0, 0], 'a counter of the workspace is not zero')
    }
    const events = await stored.rows('select message_id, items from events')
    const rows = await stored.rows(
      'select id, idempotency_key, task_id, state, failures, losses from messages order by id',
    )
    return rows.map((row) => ({
      key: String(row['idempotency_key']),
      taskId: String(row['task_id']),
      state: String(row['state']),
      failures: Number(row['failures']),
      losses: Number(row['losses']),
      replies: events
        .filter((event) => event['message_id'] === row['id'])
        .flatMap((event) => JSON.parse(String(event['items'])) as { t: string }[])
        .filter(({ t }) => t === 'reply').length,
    }))
  } finally {
    await stored.close()
  }
}

/** A command that first records its input, one line per run, and then runs `then`, which may use `$input`. */
export const recordingCommand = (folder: string, then: string): string =>
  `input=$(cat); echo "$input" >> '${folder}/runs'; ${then}`

export interface CrashMessage {
  readonly workspaceId: string
  readonly messageId: string
  readonly text: string
  readonly contextId?: string
  /** false: the platform answers as soon as the message is admitted. */
  readonly wait?: boolean
}

/** Sends a message. Returns the task, or undefined when the connection broke because the platform died. */
export async function send(platform: PlatformUnderTest, options: CrashMessage): Promise<Task | undefined> {
  const { workspaceId, messageId, text, contextId, wait = true } = options
  const context = contextId === undefined ? {} : { contextId }
  const message = { messageId, role: 'ROLE_USER', parts: [{ text }], ...context }
  const params = { message, configuration: { returnImmediately: !wait } }
  const answer = await platform.rpc(workspaceId, 'SendMessage', params).catch((error: Error) => {
    if (error.message === 'fetch failed' || error.message === 'terminated') return undefined
    throw error
  })
  if (answer === undefined) return undefined
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body.result.task
}
