/** Where a command reads and writes: stdout, stderr, stdin, environment. Tests pass a terminal of their own. */
import { isatty } from 'node:tty'
import { withoutControls } from '../../printable.ts'

/** Environment variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Terminal {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Like `out`, with control sequences of our own. Absent where `out` passes them on. */
  readonly drawing?: (text: string) => void
  readonly env: Environment
  /** Reads stdin to its end. */
  readonly readInput: () => Promise<string>
  /** `err` is a terminal. */
  readonly interactive: boolean
  /** Set when `out` is a terminal, with its width in characters. */
  readonly screen?: { readonly columns: number } | undefined
  /** Set when stdin is a terminal, not a pipe or a file. */
  readonly keyboard?: NodeJS.ReadStream | undefined
  /** Stdin as a stream, for commands that read line by line. */
  readonly input: () => NodeJS.ReadableStream
}

/**
 * What a command prints on a screen loses its control characters: a value that a command forgot to clean must not drive
 * the reader's terminal. Lines that are drawn in place (progress, chat) use `drawing`.
 */
export function withCleanScreen(terminal: Terminal): Terminal {
  const { out, screen } = terminal
  if (screen === undefined) return terminal
  return { ...terminal, drawing: out, out: (text) => out(withoutControls(text)) }
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  readInput: async () => {
    const { text } = await import('node:stream/consumers')
    return text(process.stdin)
  },
  // Getters that ask by descriptor: Node creates each stream when it is first used, and `--help` uses only one.
  get interactive() {
    return isatty(2)
  },
  get screen() {
    return isatty(1) ? { columns: process.stdout.columns } : undefined
  },
  get keyboard() {
    return isatty(0) ? process.stdin : undefined
  },
  input: () => process.stdin,
}
