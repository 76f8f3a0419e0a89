/** A terminal in memory: records the output of a command and provides its input. */
import { Readable } from 'node:stream'
import type { Terminal } from '../../src/cli/terminal/terminal.ts'

export interface RecordingTerminal extends Terminal {
  output(): string
  errors(): string
}

export function recordingTerminal(env: Terminal['env'] = {}, input = ''): RecordingTerminal {
  const out: string[] = []
  const err: string[] = []
  return {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    env,
    readInput: async () => input,
    interactive: false,
    input: () => Readable.from([input]),
    output: () => out.join(''),
    errors: () => err.join(''),
  }
}
