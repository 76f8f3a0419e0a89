/**
 * The log file of the platform or of a bridge. Every line goes to the file; warnings and errors also go to stderr. At its
 * limit the file is renamed to `<name>.1`, the older ones to `.2` and so on, and the oldest is deleted.
 */
import { closeSync, existsSync, fchmodSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { formatLogLine } from './log-format.ts'

export interface LogFileOptions {
  readonly path: string
  readonly bytesMax?: number
  readonly terminal: { err(text: string): void; readonly interactive: boolean }
  /** Writes every line to stderr, not only warnings and errors. */
  readonly verbose: boolean
}

export interface LogFile {
  write(line: string): void
  close(): void
}

const LOG_BYTES_MAX = 20 * 1024 * 1024
/** The current file and four older ones. */
const LOG_FILES_MAX = 5

/** The files of a log, the newest first; older ones need not exist. */
export const logFilesOf = (path: string): string[] =>
  Array.from({ length: LOG_FILES_MAX }, (_, age) => (age === 0 ? path : `${path}.${age}`))

export function openLogFile({ path, bytesMax = LOG_BYTES_MAX, terminal, verbose }: LogFileOptions): LogFile {
  let descriptor = openForAppend(path)
  let bytes = fstatSync(descriptor).size
  let closed = false
  const append = (line: string) => {
    if (bytes >= bytesMax) {
      closeSync(descriptor)
      rotate(path)
      descriptor = openForAppend(path)
      bytes = 0
    }
    bytes += writeSync(descriptor, line)
  }
  return {
    write(line) {
      if (verbose || levelOf(line) >= WARN_LEVEL) terminal.err(terminal.interactive ? formatLogLine(line) : line)
      if (closed) return
      try {
        append(line)
      } catch (cause) {
        // Prevents a crash of the platform when the disk is full.
        terminal.err(`the log file ${path} cannot be written (${String(cause)}): ${line}`)
      }
    },
    close() {
      if (closed) return
      closed = true
      closeSync(descriptor)
    },
  }
}

function rotate(path: string): void {
  const files = logFilesOf(path)
  for (let age = files.length - 1; age > 0; age--) {
    const [from, to] = [files[age - 1] as string, files[age] as string]
    if (existsSync(from)) renameSync(from, to)
  }
}

/** The mode counts only for a new file; an existing one may be open to others. */
function openForAppend(path: string): number {
  const descriptor = openSync(path, 'a', 0o600)
  fchmodSync(descriptor, 0o600)
  return descriptor
}

const WARN_LEVEL = 40

/** The level is the first key of a line: `{"level":40,...`. */
function levelOf(line: string): number {
  return Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? WARN_LEVEL)
}
