/** The exit codes of `molecule` and `a2a`, and how a command ends with one of them. */

export const EXIT_DONE = 0
export const EXIT_FAILED = 1
export const EXIT_USAGE = 2
/** A shell's own code for Ctrl-C. */
export const EXIT_INTERRUPTED = 130

/** Thrown by a command that has printed everything itself and ends with an exit code of its own. */
export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number

  constructor(exitCode: number) {
    super(`ended with ${exitCode}`)
    this.exitCode = exitCode
  }
}
