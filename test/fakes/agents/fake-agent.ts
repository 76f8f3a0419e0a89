/**
 * What the fake agents share: their scenario, their recorded samples, their sessions on disk, a command line read as
 * strictly as the real programs read theirs. They import nothing of the house, so that they cannot share its mistakes.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ParseArgsConfig, parseArgs } from 'node:util'

export const scenario = process.env['FAKE_SCENARIO'] ?? 'echo'

const HOME = process.env['FAKE_HOME'] ?? ''

/** A recorded output, as it came. */
export function sample(path: string): string {
  return readFileSync(join(import.meta.dirname, 'samples', path), 'utf8')
}

/** A recorded output of one JSON value a line. */
export function sampleLines(path: string): Record<string, unknown>[] {
  return sample(path)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/**
 * Ends with code 1 at a flag that the real program does not know, as it would; with `--help` it lists those that it
 * knows. In the scenario `without-NAME` it is a version that does not have that one.
 */
export function readFlags<T extends NonNullable<ParseArgsConfig['options']>>(known: T, args = process.argv.slice(2)) {
  const options = { ...known }
  if (scenario.startsWith('without-')) delete options[scenario.slice('without-'.length)]
  if (args.includes('--help')) {
    for (const [name, { short }] of Object.entries(options)) print(`  ${short ? `-${short}, ` : ''}--${name}\n`)
    process.exit(0)
  }
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (error) {
    // As gemini does it: without the dashes, and with a page of help behind it.
    const name = /'(?:-\w, )?--([\w-]+)/.exec(String(error))?.[1] ?? String(error)
    printError(`Unknown argument: ${name}\n${'  some help\n'.repeat(400)}`)
    process.exit(1)
  }
}

export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

/** What the session was told so far, oldest first; undefined where nobody knows it. */
export function loadSession(id: string): string[] | undefined {
  try {
    return JSON.parse(readFileSync(sessionPath(id), 'utf8'))
  } catch (error) {
    // Another process may be sweeping.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function saveSession(id: string, prompts: readonly string[]): void {
  mkdirSync(HOME, { recursive: true })
  // Whole or not at all: others look at it meanwhile.
  const aside = `${sessionPath(id)}.${process.pid}`
  writeFileSync(aside, JSON.stringify(prompts))
  renameSync(aside, sessionPath(id))
}

const sessionPath = (id: string): string => join(HOME, `session-${id}.json`)

/** Removes what was begun and never used, as gemini does when it starts: also what another process has just begun. */
export function sweepSessions(): void {
  if (!existsSync(HOME)) return
  for (const name of readdirSync(HOME)) {
    const id = /^session-(.*)\.json$/.exec(name)?.[1]
    if (id !== undefined && loadSession(id)?.length === 0) rmSync(sessionPath(id), { force: true })
  }
}

export function print(text: string): void {
  process.stdout.write(text)
}

export function printError(text: string): void {
  process.stderr.write(text)
}

/** Through `exitCode` alone the pipes are written to their end. */
export async function endless(): Promise<never> {
  startDetachedProcess()
  for (;;) await delay(60_000)
}

/** A tool's process in a session of its own, which a signal to the group does not reach. */
export function startDetachedProcess(): void {
  spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).unref()
}

/** More than 10 MiB, as fast as it is read. */
export async function flood(line: string): Promise<never> {
  const block = line.repeat(Math.ceil(65_536 / line.length))
  for (;;) {
    if (!process.stdout.write(block)) await new Promise((resolve) => process.stdout.once('drain', resolve))
  }
}

/** The text in pieces, with pauses, so that each arrives by itself. */
export async function inPieces(text: string, say: (piece: string) => void): Promise<void> {
  const characters = [...text]
  const size = Math.max(1, Math.ceil(characters.length / 4))
  for (let start = 0; start < characters.length; start += size) {
    say(characters.slice(start, start + size).join(''))
    await delay(20)
  }
}
