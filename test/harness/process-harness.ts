/** A process supervisor for one test, with a unique owner. When the test ends it is closed and must leave no process. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { createProcesses, type ProcessesOptions } from '../../src/process/create-processes.ts'
import type { Processes, ProcessResult, ProcessRunOptions } from '../../src/process/processes.ts'
import { markedPids } from './live-processes.ts'

/** The environment that a shell command needs to find its programs. */
export const PLAIN_ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin' }

export interface ProcessHarness {
  readonly owner: string
  readonly dir: string
  readonly processes: Processes
  /** Runs a shell command. */
  sh(line: string, options?: Partial<ProcessRunOptions>, signal?: AbortSignal): Promise<ProcessResult>
}

let harnesses = 0

export function createProcessHarness(t: TestContext, options: Partial<ProcessesOptions> = {}): ProcessHarness {
  harnesses += 1
  const owner = `test-${process.pid}-${harnesses}`
  const dir = temporaryDir(t)
  const processes = createProcesses({ owner, clock: systemClock, log: silentLog, ...options })
  t.after(async () => {
    await processes.close()
    if (process.platform === 'linux') assert.deepEqual(markedPids(`${owner}:`), [], 'processes were left behind')
  })
  return {
    owner,
    dir,
    processes,
    sh: (line, overrides, signal = new AbortController().signal) =>
      processes.run({ ...lineOptions(line, dir), ...overrides }, signal),
  }
}

export function temporaryDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'molecule-test-'))
  // A process that the test ends later may still write a file meanwhile: then the folder is not empty at the first try.
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }))
  return dir
}

let marks = 0

function lineOptions(line: string, cwd: string): ProcessRunOptions {
  marks += 1
  return {
    command: ['/bin/sh', '-c', line],
    cwd,
    env: PLAIN_ENVIRONMENT,
    mark: `turn-${marks}`,
    input: '',
    outputBytesMax: 1_000_000,
    stderrBytesKept: 1024,
    killGraceMs: 200,
  }
}
