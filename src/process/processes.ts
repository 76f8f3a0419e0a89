/**
 * The process seam: one supervised subprocess at a time, started through here and nowhere else, so that every child
 * is in a group of its own, carries a mark in its environment, is recorded for a restarted platform to reap, and is
 * capped in what it may print.
 */

export interface RunOptions {
  /** Program and arguments; the first is looked up on PATH of `env`. */
  readonly command: readonly [string, ...string[]]
  readonly cwd: string
  /** The whole environment of the child; nothing is inherited behind it. */
  readonly env: Readonly<Record<string, string>>
  /** Unique to the turn; put into the environment, so that escapees of the group are found by it. */
  readonly mark: string
  /** Written to stdin, which is then closed. */
  readonly input: string
  /** Stdout beyond this ends the process with `output_too_large`. */
  readonly outputBytesMax: number
  /** How much of the end of stderr is kept. */
  readonly stderrBytesKept: number
  /** Wall clock; undefined = none. */
  readonly timeoutMs?: number
  /** How long a stopped process may take to leave by itself, from SIGTERM to SIGKILL; undefined = the house's. */
  readonly killGraceMs?: number
  /** Called with each chunk of stdout as it comes. Must not throw. */
  readonly onOutput?: (chunk: Uint8Array) => void
}

/** How a subprocess ended, in facts; what they mean is for the backend to say. */
export interface RunResult {
  readonly end: 'exited' | 'timed_out' | 'canceled' | 'output_too_large' | 'spawn_failed'
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: Uint8Array
  /** The last `stderrBytesKept` bytes. */
  readonly stderrTail: Uint8Array
  readonly stderrCut: boolean
  /** For `spawn_failed`: the system's error. */
  readonly cause?: Error
}

/**
 * Contract: `run` resolves once, always, never rejects; when it has resolved, no process of that run is alive, except
 * that an escapee of a run that ended by itself (`exited`) is killed within seconds after.
 */
export interface Processes {
  run(options: RunOptions, signal: AbortSignal): Promise<RunResult>
  /** Kills what is still running and finishes sweeping. Idempotent. */
  close(): Promise<void>
}
