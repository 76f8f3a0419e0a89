/**
 * Turns voice notes into text by the command of the setting `voice-command`. The note is a file in a folder of its own; its
 * path is `$1` and `$MOLECULE_VOICE_FILE`, never part of the command line. Invariant: after each run the folder is gone.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import type { Transcribe, VoiceNote } from '../../doors/chat/chat-context.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { childEnvironment } from '../../process/child-environment.ts'
import type { Processes, ProcessResult } from '../../process/processes.ts'
import { createKeyedQueue } from '../../wait.ts'

/** A command that takes longer is stopped, and its note stays a file. */
const VOICE_MS_MAX = 120_000
/** Of the text that it prints. */
const TEXT_BYTES_MAX = 64 * 1024
/** Commands that run at once; further notes wait. */
const RUNS_MAX = 4

export interface VoiceCommandOptions {
  readonly command: string
  readonly processes: Processes
  /** What the children of the platform inherit. */
  readonly environment: Readonly<Record<string, string>>
  readonly timeoutMs?: number
}

export function createTranscriber(options: VoiceCommandOptions): Transcribe {
  const inLine = createKeyedQueue()
  let begun = 0
  return (note, signal) => {
    begun += 1
    return inLine(String(begun % RUNS_MAX), () => transcribe(note, options, signal))
  }
}

async function transcribe(
  { name, content }: VoiceNote,
  { command, processes, environment, timeoutMs = VOICE_MS_MAX }: VoiceCommandOptions,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) throw failed('it was stopped')
  const folder = await mkdtemp(join(tmpdir(), 'molecule-voice-'))
  try {
    // Programs know the format by the ending. The rest of the name is from outside and is not used.
    const ending = /^\.[a-z0-9]{1,8}$/i.test(extname(name)) ? extname(name) : '.ogg'
    const file = join(folder, `voice${ending}`)
    await writeFile(file, content, { mode: 0o600 })
    const result = await processes.run(
      {
        command: ['/bin/sh', '-c', command, 'voice-command', file],
        cwd: folder,
        env: childEnvironment(environment, { MOLECULE_VOICE_FILE: file }),
        mark: `voice-${ulid()}`,
        input: '',
        outputBytesMax: TEXT_BYTES_MAX,
        timeoutMs,
      },
      signal,
    )
    return wordsOf(result)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

const ENDS = {
  timed_out: 'it took too long',
  canceled: 'it was stopped',
  output_too_large: 'it printed too much',
  spawn_failed: 'it could not be started',
} as const

function wordsOf({ end, exitCode, signal, stdout, stderrTail }: ProcessResult): string {
  if (end !== 'exited') throw failed(ENDS[end])
  const detail = Buffer.from(stderrTail).toString().trim()
  if (exitCode !== 0) throw failed(`it ended with ${exitCode ?? signal}: ${detail.slice(-500)}`)
  const words = Buffer.from(stdout).toString().trim()
  if (words === '') throw failed('it printed no text')
  return words
}

const failed = (problem: string) => new MoleculeError('exit', `the voice command failed: ${problem}`)
