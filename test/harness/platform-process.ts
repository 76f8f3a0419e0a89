/**
 * Starts the real `bin/molecule up` on loopback and a free port, and does not wait until it is ready: the crash tests
 * kill it while it starts. `startPlatform` of platform.ts waits, and adds what the end-to-end tests send to it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanEnvironment, endProcess, MOLECULE } from './command.ts'

/** The test fails when the platform is not ready by then. */
const READY_MS_MAX = 60_000
/** A platform that has not stopped by then is killed, and its exit code is null. */
const STOP_MS_MAX = 60_000

export interface PlatformProcessOptions {
  /** May be the folder of an earlier platform. */
  readonly dataDir: string
  /** `postgres://...`; unset = the embedded store. */
  readonly database?: string | undefined
  readonly args?: readonly string[] | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** A command that sets something up and then executes the rest of its command line, which is the platform's. */
  readonly wrapper?: readonly string[]
}

export interface PlatformProcess {
  readonly pid: number
  /** Resolves with the URL once the platform has printed it; rejects when the platform ends first. */
  readonly ready: Promise<string>
  /** Resolves once the process has ended. */
  readonly exited: Promise<unknown>
  /** Sends the signal and waits for the end; the exit code, or null when a signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Everything printed so far, stdout and stderr. */
  output(): string
  /** Ends the process in the quickest way. */
  end(): Promise<void>
}

export function startPlatformProcess(options: PlatformProcessOptions): PlatformProcess {
  const { dataDir, database, args = [], env, wrapper = [] } = options
  const command = [...wrapper, MOLECULE, 'up', '--port', '0', '--data-dir', dataDir, ...args]
  if (database !== undefined) command.push('--database', database)
  const [program = MOLECULE, ...programArgs] = command
  const child = spawn(program, programArgs, { env: cleanEnvironment(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  let output = ''
  const ready = Promise.withResolvers<string>()
  const fail = (reason: string) => ready.reject(new Error(`molecule up ${reason}: ${output}`))
  const timer = setTimeout(() => fail('did not get ready'), READY_MS_MAX)
  const read = (chunk: string) => {
    output += chunk
    const url = /runs at (http:\S+)\n/.exec(output)?.[1]
    if (url === undefined) return
    clearTimeout(timer)
    ready.resolve(url)
  }
  child.stdout.setEncoding('utf8').on('data', read)
  child.stderr.setEncoding('utf8').on('data', read)
  child.once('exit', (code, signal) => {
    clearTimeout(timer)
    fail(`ended with ${code ?? signal}`)
  })
  // The crash tests kill a platform before it is ready and do not wait for `ready`.
  ready.promise.catch(() => undefined)
  return {
    pid: child.pid as number,
    ready: ready.promise,
    exited,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const killTimer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      child.kill(signal)
      await exited
      clearTimeout(killTimer)
      return child.exitCode
    },
    output: () => output,
    end: () => endProcess(child),
  }
}

/** The secret of the platform's admin. */
export const readToken = (dataDir: string): string => readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
/** The first part of the marks of the platform's processes. */
export const readHostId = (dataDir: string): string => readFileSync(join(dataDir, 'host-id'), 'utf8').trim()
