/**
 * One life of a platform: the real `bin/molecule up` on a data folder that earlier lives may have used. Unlike the
 * platform of the end-to-end tests it can be killed while it is still starting, which is a moment like any other.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MOLECULE = fileURLToPath(new URL('../../bin/molecule', import.meta.url))
const READY_MS_MAX = 30_000
const STOP_MS_MAX = 30_000
const OUTPUT_CHARACTERS_KEPT = 20_000

export interface PlatformProcessOptions {
  readonly dataDir: string
  /** `postgres://...`; unset = the embedded store. */
  readonly database?: string | undefined
  readonly env?: Readonly<Record<string, string>>
  /** A program that prepares the ground and then becomes the platform: the command line is put behind it. */
  readonly wrapper?: readonly string[]
}

export interface PlatformProcess {
  readonly pid: number
  /** Resolves with its address once it says so; rejects when it ends first. */
  readonly ready: Promise<string>
  /** `kill -9`, and waits until it is gone. */
  kill(): Promise<void>
  /** SIGTERM, and waits; the exit code, or null when it had to be killed. */
  stop(): Promise<number | null>
  /** The end of what it printed. */
  output(): string
}

export function startPlatformProcess({
  dataDir,
  database,
  env,
  wrapper = [],
}: PlatformProcessOptions): PlatformProcess {
  const words = [...wrapper, MOLECULE, 'up', '--port', '0', '--data-dir', dataDir]
  if (database !== undefined) words.push('--database', database)
  const [program = MOLECULE, ...args] = words
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const gone = once(child, 'exit')
  const isGone = () => child.exitCode !== null || child.signalCode !== null
  const ready = new Promise<string>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`molecule up ${why}: ${output}`))
    const timer = setTimeout(() => fail('did not get ready'), READY_MS_MAX)
    const hear = (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_CHARACTERS_KEPT)
      const url = /runs at (http:\S+)\n/.exec(output)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    }
    child.stdout.setEncoding('utf8').on('data', hear)
    child.stderr.setEncoding('utf8').on('data', hear)
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      fail(`ended with ${code ?? signal}`)
    })
  })
  // A life that is killed before it was ready is nobody's disappointment.
  ready.catch(() => undefined)
  const kill = async () => {
    if (!isGone()) child.kill('SIGKILL')
    await gone
  }
  return {
    pid: child.pid as number,
    ready,
    kill,
    async stop() {
      if (isGone()) return child.exitCode
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      child.kill('SIGTERM')
      await gone
      clearTimeout(timer)
      return child.exitCode
    },
    output: () => output,
  }
}

/** The secret that lets us in, and the name that the marks of its processes begin with. */
export const readToken = (dataDir: string): string => readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
export const readHostId = (dataDir: string): string => readFileSync(join(dataDir, 'host-id'), 'utf8').trim()
