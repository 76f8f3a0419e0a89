/**
 * Shared by the fake agents: the scenario, recorded samples, sessions on disk, and a command line parsed as strictly as
 * the real programs do. The fakes import nothing of src/, so that they cannot repeat its mistakes.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ParseArgsConfig, parseArgs } from 'node:util'

export const scenario = process.env['FAKE_SCENARIO'] ?? 'echo'

/** The folder for everything that outlives a process of the fake. */
export const HOME = process.env['FAKE_HOME'] ?? ''

/** A recorded output of the real program. */
export function readSample(path: string): string {
  return readFileSync(join(import.meta.dirname, 'samples', path), 'utf8')
}

/** A recorded output that has one JSON value per line. */
export function readSampleLines(path: string): Record<string, unknown>[] {
  return readSample(path)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/**
 * Parses the flags. Exits with code 1 at an unknown flag, as the real program does; with `--help` it lists the flags. The
 * scenario `without-NAME` is a version that lacks the flag NAME.
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
    // The format of gemini: the name without dashes, followed by a page of help.
    const name = /'(?:-\w, )?--([\w-]+)/.exec(String(error))?.[1] ?? String(error)
    printError(`Unknown argument: ${name}\n${'  some help\n'.repeat(400)}`)
    process.exit(1)
  }
}

/** The argument after the given one. */
export function argumentAfter(name: string): string | undefined {
  const index = process.argv.indexOf(name)
  return index < 0 ? undefined : process.argv[index + 1]
}

/** A message `!NAME text` chooses the behaviour NAME for `text`; any other message gets the default. */
export function chooseBehaviour(message: string, fallback: string): { name: string; text: string } {
  // The platform says before the text where a message of a chat comes from.
  const text = message.replace(/^<from_chat>[\s\S]*?<\/from_chat>\n\n/, '')
  const command = /^!([a-z0-9-]+) ?/.exec(text)
  if (command === null) return { name: fallback, text: message }
  return { name: command[1] ?? '', text: text.slice(command[0].length) }
}

export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

/** The prompts of the session, oldest first; undefined for an unknown session. */
export function loadSession(id: string): string[] | undefined {
  try {
    return JSON.parse(readFileSync(sessionPath(id), 'utf8'))
  } catch (error) {
    // No error: another process may have swept the session meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function saveSession(id: string, prompts: readonly string[]): void {
  mkdirSync(HOME, { recursive: true })
  // Atomic, because other processes read the file meanwhile.
  const temporary = `${sessionPath(id)}.${process.pid}`
  writeFileSync(temporary, JSON.stringify(prompts))
  renameSync(temporary, sessionPath(id))
}

/** The model of a session; it outlives the process, as that of opencode and codex-acp does. */
export const saveModel = (id: string, model: string): void => writeFileSync(`${sessionPath(id)}.model`, model)

export function loadModel(id: string): string | undefined {
  const path = `${sessionPath(id)}.model`
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

const sessionPath = (id: string): string => join(HOME, `session-${id}.json`)

/** Removes empty sessions, as gemini does at start, including those that another process has just created. */
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

/** A turn that never ends, with a tool in its own process session. */
export async function endless(): Promise<never> {
  startDetachedProcess()
  for (;;) await delay(60_000)
}

/** A tool in its own process session, which a signal to the process group does not reach. */
export function startDetachedProcess(): void {
  spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).unref()
}

/** Prints the line without end, as fast as the reader reads. */
export async function flood(line: string): Promise<never> {
  const block = line.repeat(Math.ceil(65_536 / line.length))
  for (;;) {
    if (!process.stdout.write(block)) await new Promise((resolve) => process.stdout.once('drain', resolve))
  }
}

/** Sends the text in four pieces with pauses, so that each piece arrives separately. */
export async function inPieces(text: string, send: (piece: string) => void): Promise<void> {
  const characters = [...text]
  const size = Math.max(1, Math.ceil(characters.length / 4))
  for (let start = 0; start < characters.length; start += size) {
    send(characters.slice(start, start + size).join(''))
    await delay(20)
  }
}
