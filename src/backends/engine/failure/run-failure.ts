/**
 * The table from the result of a process to an error. Every message names the command. The end of stderr is in the
 * message, and also alone in the details, for doors that show it only to some readers.
 */
import { MoleculeError } from '../../../errors.ts'
import type { ProcessResult } from '../../../process/processes.ts'

const STDERR_BYTES_SHOWN = 1024
/** The shell's own exit codes. */
const NOT_EXECUTABLE = 126
const NOT_FOUND = 127

/** Facts about the run that the messages name. */
export interface RunFacts {
  /** The command as its owner wrote it. */
  readonly command: string
  /** The timeout as its owner wrote it. */
  readonly timeout: string
  readonly outputBytesMax: number
}

/** Undefined if the process exited by itself with code 0. */
export function runFailure(result: ProcessResult, facts: RunFacts): MoleculeError | undefined {
  const command = `command ${JSON.stringify(facts.command)}`
  const stderr = stderrTail(result).trimEnd()
  const shownStderr = stderr === '' ? '' : ` (stderr: ${stderr})`
  switch (result.end) {
    case 'exited':
      if (result.exitCode === 0) return undefined
      return new MoleculeError('exit', `${command} ${describeExit(result)}${shownStderr}${devStdHint(stderr)}`, {
        // A program that is not there, or not executable, is still not there at the next attempt.
        retryable: result.exitCode !== NOT_EXECUTABLE && result.exitCode !== NOT_FOUND,
        details: { exitCode: result.exitCode, signal: result.signal, stderr },
      })
    case 'timed_out':
      return new MoleculeError('timeout', `${command} timed out after ${facts.timeout} and was killed${shownStderr}`, {
        retryable: true,
        details: { timeout: facts.timeout, stderr },
      })
    case 'output_too_large':
      return new MoleculeError(
        'too_large',
        `${command} printed more than ${facts.outputBytesMax} bytes and was killed${shownStderr}`,
        { details: { limitBytes: facts.outputBytesMax, stderr } },
      )
    case 'canceled':
      return new MoleculeError('canceled', `${command} was canceled`, { details: { stderr } })
    case 'spawn_failed':
      return new MoleculeError('spawn_failed', `${command} could not be started: ${result.cause?.message ?? ''}`, {
        retryable: true,
        cause: result.cause,
      })
  }
}

/** The last 1024 bytes, `...` before them if there were more. */
export function stderrTail({ stderrTail: bytes, stderrCut }: ProcessResult): string {
  const cut = stderrCut || bytes.length > STDERR_BYTES_SHOWN
  let start = Math.max(0, bytes.length - STDERR_BYTES_SHOWN)
  // Without this, a cut inside a character would show garbage.
  if (cut) while (isContinuation(bytes[start])) start += 1
  return (cut ? '...' : '') + new TextDecoder().decode(bytes.subarray(start))
}

function describeExit({ exitCode, signal }: ProcessResult): string {
  if (exitCode === null) return `was killed by ${signal}`
  // The most common errors of a new workspace.
  if (exitCode === NOT_FOUND) return 'exited with code 127: command not found'
  if (exitCode === NOT_EXECUTABLE) return 'exited with code 126: command found but not executable'
  return `exited with code ${exitCode}`
}

/** On Linux Node gives a child sockets, which cannot be opened by name. The system's error message does not say so. */
function devStdHint(stderr: string): string {
  if (!/\/dev\/std(in|out|err): No such device or address/.test(stderr)) return ''
  return '; /dev/stdin, /dev/stdout and /dev/stderr cannot be opened here: read stdin itself, write with >&2'
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000
}
