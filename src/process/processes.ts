/**
 * The process seam: supervised subprocesses, run once or kept running, started through here and nowhere else, so that every child
 * is in a group of its own, carries a mark in its environment, is recorded for a restarted platform to reap, and is
 * capped in what it may print.
 */

/** What every child is started with. */
export interface SpawnOptions {
  /** Program and arguments; the first is looked up on PATH of `env`. */
  readonly command: readonly [string, ...string[]]
  readonly cwd: string
  /** The whole environment of the child; nothing is inherited behind it. */
  readonly env: Readonly<Record<string, string>>
  /** Unique among what lives; put into the environment, so that escapees of the group are found by it. */
  readonly mark: string
  /** How much of the end of stderr is kept; 16 KiB where unset. */
  readonly stderrBytesKept?: number
  /** How long a stopped process may take to leave by itself, from SIGTERM to SIGKILL; undefined = the house's. */
  readonly killGraceMs?: number
}

/** For a process that runs once. */
export interface ProcessRunOptions extends SpawnOptions {
  /** Written to stdin, which is then closed. */
  readonly input: string
  /** Stdout beyond this ends the process with `output_too_large`. */
  readonly outputBytesMax: number
  /** Wall clock; undefined = none. */
  readonly timeoutMs?: number
  /** Called with each chunk of stdout as it comes. Must not throw. */
  readonly onOutput?: (chunk: Uint8Array) => void
}

/** How a subprocess ended, in facts; what they mean is for the backend to say. */
export interface ProcessResult {
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

/** For a process that stays and is talked to in lines. */
export interface ProcessStartOptions extends SpawnOptions {
  /** A line of stdout longer than this ends the process with `output_too_large`. */
  readonly lineBytesMax: number
  /** Called with each line of stdout as it comes, without its end; the last also where it has none. Must not throw. */
  readonly onLine: (line: string) => void
  /**
   * For one that runs once and whose answer should not wait for a look at every process of the machine: what escaped
   * from one that ended by itself is killed within seconds after `ended`, not before.
   */
  readonly sweepLater?: boolean
}

/**
 * A process that stays. Contract: `ended` resolves once, always, never rejects, and by then no process of it is left
 * (but for `sweepLater`); all lines were given before. One that could not be started is one that has `ended` as `spawn_failed`.
 */
export interface RunningProcess {
  readonly pid: number | undefined
  readonly ended: Promise<ProcessResult>
  /** Resolves when the system has taken the text: false where it never will, for the process is gone or reads nothing. */
  write(text: string): Promise<boolean>
  /** No more is written: a process that reads to the end of its input has it all. */
  endInput(): void
  /** The end of what it wrote to stderr so far. */
  stderr(): { readonly tail: Uint8Array; readonly cut: boolean }
  /** Ends its input, waits a moment, then SIGTERM, the grace, SIGKILL, and what carries its mark. Idempotent. */
  stop(): Promise<ProcessResult>
  /** Now, for `stopChildrenSince`. */
  moment(): number
  /**
   * Kills whatever carries its mark and was started since that moment, except the process itself. False where that
   * cannot be told (not on Linux) or some would not die: then only stopping it all is sure.
   */
  stopChildrenSince(moment: number): Promise<boolean>
}

/**
 * Contract: `run` resolves once, always, never rejects; when it has resolved, no process of that run is alive, except
 * that an escapee of a run that ended by itself (`exited`) is killed within seconds after.
 */
export interface Processes {
  run(options: ProcessRunOptions, signal: AbortSignal): Promise<ProcessResult>
  /** At once; after `close` it gives one that has ended as `canceled`. */
  start(options: ProcessStartOptions): RunningProcess
  /** Kills what is still running and finishes sweeping. Idempotent. */
  close(): Promise<void>
}
