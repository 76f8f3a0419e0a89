/**
 * Where a program is only looked at: a folder of its own for all that it would write, and an environment without
 * anybody's credentials. So a look can neither change a file of the user's nor ask a model, whatever the program does.
 * HOME stays as it is, because many a program is itself found through it.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { formatDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import { childEnvironment } from '../../../process/child-environment.ts'
import type { BackendContext } from '../../backend.ts'

/** How a program is made to keep its state elsewhere and to call nobody. */
export interface ProbeIsolation {
  /** Variables that name the folder of its state. */
  readonly stateIn: readonly string[]
  /** They are read by others too, such as what starts the program: its version is then asked without them. */
  readonly isShared?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Files of that folder, with their text. */
  readonly files?: Readonly<Record<string, string>>
}

export interface Scratch {
  readonly dir: string
  readonly env: Readonly<Record<string, string>>
  /** For the processes that are started here. */
  readonly mark: string
  /** Aborts when the look has taken too long, or is cancelled. */
  readonly signal: AbortSignal
}

/** The slowest one needs 5 s on an idle machine, and more on a busy one. */
const PROBE_MS_MAX = 60_000
const CREDENTIAL = /_(KEY|KEY_ID|TOKEN|SECRET|CREDENTIALS)$/

export interface ScratchOptions {
  readonly context: Pick<BackendContext, 'environment'>
  readonly quiet: ProbeIsolation
  /** Variables that the program always gets. */
  readonly own?: Readonly<Record<string, string>>
}

export async function withScratch<T>(
  { context, quiet, own = {} }: ScratchOptions,
  work: (scratch: Scratch) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'molecule-look-'))
  try {
    for (const [name, text] of Object.entries(quiet.files ?? {})) {
      await mkdir(dirname(join(dir, name)), { recursive: true })
      await writeFile(join(dir, name), text)
    }
    const state = Object.fromEntries(quiet.stateIn.map((name) => [name, dir]))
    const all = childEnvironment(context.environment, { ...own, DO_NOT_TRACK: '1', ...quiet.env, ...state })
    const env = Object.fromEntries(Object.entries(all).filter(([name]) => !CREDENTIAL.test(name)))
    const limit = AbortSignal.timeout(PROBE_MS_MAX)
    const looking = work({ dir, env, mark: `look-${randomUUID()}`, signal: AbortSignal.any([signal, limit]) })
    return await looking.catch((thrown: unknown) => {
      // What it says of a process that we ended is about us, not about the program.
      if (signal.aborted) throw new MoleculeError('canceled', 'the look was cancelled', { cause: thrown })
      if (!limit.aborted) throw thrown
      throw new MoleculeError('timeout', `it gave no answer within ${formatDuration(PROBE_MS_MAX)}`, { cause: thrown })
    })
  } finally {
    // Some write on while they are leaving.
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  }
}
