/**
 * Runs a probe of a program in isolation: in a temporary folder for its state, with an environment without credentials.
 * So a probe cannot change a file of the user or call a model, whatever the program does. HOME is unchanged, because
 * many programs are themselves found through it.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { formatDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import { childEnvironment } from '../../../process/child-environment.ts'
import type { BackendContext } from '../../backend.ts'

/** How to make a program keep its state in another folder and make no network calls. */
export interface ProbeIsolation {
  /** Variables that name the folder of the program's state. */
  readonly stateIn: readonly string[]
  /** Other programs read them too, e.g. the launcher of the program. The version is then read without them. */
  readonly isShared?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Files to write into that folder, by name. */
  readonly files?: Readonly<Record<string, string>>
}

export interface Scratch {
  readonly dir: string
  readonly env: Readonly<Record<string, string>>
  /** The mark of the processes that the probe starts. */
  readonly mark: string
  /** Aborts when the probe takes too long or is cancelled. */
  readonly signal: AbortSignal
}

/** A longer probe fails as `timeout`. The slowest program needs 5 s on an idle machine. */
const PROBE_MS_MAX = 60_000
const CREDENTIAL = /_(KEY|KEY_ID|TOKEN|SECRET|CREDENTIALS)$/

export interface ScratchOptions {
  readonly context: Pick<BackendContext, 'environment'>
  readonly isolation: ProbeIsolation
  /** Variables that the program always gets. */
  readonly own?: Readonly<Record<string, string>>
}

export async function withScratch<T>(
  { context, isolation, own = {} }: ScratchOptions,
  work: (scratch: Scratch) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'molecule-look-'))
  try {
    for (const [name, text] of Object.entries(isolation.files ?? {})) {
      await mkdir(dirname(join(dir, name)), { recursive: true })
      await writeFile(join(dir, name), text)
    }
    const state = Object.fromEntries(isolation.stateIn.map((name) => [name, dir]))
    const all = childEnvironment(context.environment, { ...own, DO_NOT_TRACK: '1', ...isolation.env, ...state })
    const env = Object.fromEntries(Object.entries(all).filter(([name]) => !CREDENTIAL.test(name)))
    const limit = AbortSignal.timeout(PROBE_MS_MAX)
    const probing = work({ dir, env, mark: `look-${randomUUID()}`, signal: AbortSignal.any([signal, limit]) })
    return await probing.catch((thrown: unknown) => {
      // The probe's own error comes from the stopped process and says nothing about the program.
      if (signal.aborted) throw new MoleculeError('canceled', 'the probe was cancelled', { cause: thrown })
      if (!limit.aborted) throw thrown
      throw new MoleculeError('timeout', `the program did not answer within ${formatDuration(PROBE_MS_MAX)}`, {
        cause: thrown,
      })
    })
  } finally {
    // Retries, because some programs still write while they exit.
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  }
}
