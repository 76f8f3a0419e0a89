/**
 * The process seam: supervised subprocesses, run once or kept running. Every child is started through it.
 * Invariant: a child has its own process group, carries a mark in its environment, has its own cgroup where the platform
 * may make one, is recorded so that a restarted platform can kill it, and has a limit on its output.
 */

/** Options of every child. */
export interface SpawnOptions {
  /** Program and arguments. The program is looked up on the PATH of `env`. */
  readonly command: readonly [string, ...string[]]
  readonly cwd: string
  /** The whole environment of the child; it inherits nothing else. */
  readonly env: Readonly<Record<string, string>>
  /** Unique among live children. It is put into the environment, so that escapees of the group are found by it. */
  readonly mark: string
  /** How much of the end of stderr is kept; unset = 16 KiB. */
  readonly stderrBytesKept?: number
  /** The time between SIGTERM and SIGKILL for a stopped process; unset = the default of `ProcessesOptions`. */
  readonly killGraceMs?: number
}

/** Options of a process that runs once. */
export interface ProcessRunOptions extends SpawnOptions {
  /** Written to stdin, which is then closed. */
  readonly input: string
  /** Stdout beyond this ends the process with `output_too_large`. */
  readonly outputBytesMax: number
  /** Limits the whole run; unset = no limit. */
  readonly timeoutMs?: number
  /** Calls the listener with each wait that does not count as time of the run. */
  readonly onWait?: (listener: (over: Promise<void>) => void) => void
  /** Called with each chunk of stdout. Must not throw. */
  readonly onOutput?: (chunk: Uint8Array) => void
}

/** How a subprocess ended. The backend decides what it means. */
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

/** Options of a process that keeps running and talks in lines. */
export interface ProcessStartOptions extends SpawnOptions {
  /** A line of stdout longer than this ends the process with `output_too_large`. */
  readonly lineBytesMax: number
  /** Called with each line of stdout, without its newline. A last line without a newline counts. Must not throw. */
  readonly onLine: (line: string) => void
  /** Called with each line of stderr, until one is longer than 64 KiB. Must not throw. */
  readonly onErrorLine?: (line: string) => void
  /**
   * For a process that runs once: `ended` does not wait for a scan of all processes of the machine. If the process
   * ended by itself, its escapees are killed within seconds after `ended`.
   */
  readonly sweepLater?: boolean
}

/**
 * A process that keeps running. Contract: `ended` always resolves, once, and never rejects. By then its whole tree is
 * dead (except with `sweepLater`) and all lines were emitted. If it could not be started, it has `ended` as
 * `spawn_failed`.
 */
export interface RunningProcess {
  readonly pid: number | undefined
  readonly ended: Promise<ProcessResult>
  /** Resolves to true when the system has taken the text, to false if the process is gone or does not read. */
  write(text: string): Promise<boolean>
  /** Closes stdin, for a process that reads to the end of its input. */
  endInput(): void
  /** The end of its stderr so far. */
  stderr(): { readonly tail: Uint8Array; readonly cut: boolean }
  /** Closes stdin, waits 500 ms, then SIGTERM, the grace, SIGKILL, and a kill of its escapees. Idempotent. */
  stop(): Promise<ProcessResult>
  /** Now, for `killChildrenSince`. */
  moment(): number
  /**
   * Kills the processes that carry its mark and started since that moment, except the process itself. False if that is
   * impossible (not on Linux) or some survived: then the caller has to stop the whole process.
   */
  killChildrenSince(moment: number): Promise<boolean>
}

/**
 * Contract: `run` always resolves, once, and never rejects. By then no process of that run is alive. Without cgroups, an
 * escapee of a run that ended by itself (`exited`) is killed within seconds after, and one without its mark survives.
 */
export interface Processes {
  run(options: ProcessRunOptions, signal: AbortSignal): Promise<ProcessResult>
  /** Starts at once. After `close` it returns a process that has ended as `canceled`. */
  start(options: ProcessStartOptions): RunningProcess
  /** Kills all running processes and their escapees. Idempotent. */
  close(): Promise<void>
}
