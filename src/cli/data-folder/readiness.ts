/**
 * Whether the platform accepts work, for `/ready`. A store that can be read may be unable to write: a full disk, a
 * read-only file system, damaged pages. So a probe writes one row and commits it. Everyone may poll `/ready`, without a
 * token: polls within `PROBE_MS` share one probe, so they cost no more than one small write in that time.
 *
 * A nearly full disk has room for the probe and not for a message. So a write of the platform that failed a moment ago
 * counts as well.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { type Store, sql } from '../../store/store.ts'

/** A probe that succeeded holds for this long. */
const PROBE_MS = 5000
/** After a write that failed, the next probe comes sooner: a platform with space again is ready again. */
const FAILED_WRITE_MS = 1000
/**
 * A store that has not answered a read or a write by then is not ready. Supervisors give up sooner than a connection to a
 * stalled database, which takes 30 s. The probe itself goes on and is not repeated meanwhile.
 */
const PROBE_TIMEOUT_MS = 3000
/** As much as a usual message with its reply, so that the last free block of a full disk proves nothing. */
const FILLER = ' '.repeat(32 * 1024)

export interface ReadinessOptions {
  readonly store: Store
  readonly clock: Clock
  readonly host: string
  /** Why the disk has too little space, if it has. */
  readonly lowSpace?: () => string | undefined
}

export interface Readiness {
  /** The store for all parts of the platform: their writes that fail are noticed. */
  readonly store: Store
  /** Why the platform accepts no work, or undefined when it does. */
  unready(): Promise<string | undefined>
  /** From now on the platform is not ready. */
  shutDown(): void
}

export function createReadiness({ store, clock, host, lowSpace }: ReadinessOptions): Readiness {
  let isShuttingDown = false
  let last: { readonly reason: string | undefined; readonly atMs: number } | undefined
  let probe: Promise<string | undefined> | undefined
  let reading: Promise<string | undefined> | undefined
  const noteFailure = (error: unknown) => {
    if (error instanceof MoleculeError && error.code === 'store_unavailable') note(error.message)
  }
  const note = (reason: string | undefined) => {
    last = { reason, atMs: clock.monotonicMs() }
  }
  const start = async () => {
    const reason = await reasonOf(() =>
      store.write(function* () {
        yield* sql(WRITE_PROBE, [host, FILLER])
      }),
    )
    note(reason)
    probe = undefined
    return reason
  }
  const startReading = async () => {
    const reason = await reasonOf(() => store.read(readOne))
    reading = undefined
    return reason
  }
  const probeStore = async () => {
    // Costs nothing and notices at once a store that is gone.
    reading ??= startReading()
    const unreadable = await within(clock, reading, 'a read')
    if (unreadable !== undefined) return unreadable
    if (last !== undefined) {
      const holdsMs = last.reason === undefined ? PROBE_MS : FAILED_WRITE_MS
      if (clock.monotonicMs() - last.atMs < holdsMs) return last.reason
    }
    probe ??= start()
    return await within(clock, probe, 'a write')
  }
  return {
    store: {
      ...store,
      write(transaction, key) {
        const written = store.write(transaction, key)
        written.catch(noteFailure)
        return written
      },
    },
    unready: async () => (isShuttingDown ? 'shutting down' : (lowSpace?.() ?? (await probeStore()))),
    shutDown() {
      isShuttingDown = true
    },
  }
}

const WRITE_PROBE = `insert into readiness (host, checked_at, filler) values ($1, now_ms(), $2)
  on conflict (host) do update set checked_at = excluded.checked_at, filler = excluded.filler`

function* readOne() {
  yield* sql('select 1 as alive')
}

async function reasonOf(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    // `/ready` needs no token, so it shows only messages that are written for callers.
    return error instanceof MoleculeError ? error.message : 'the store cannot be read or written'
  }
}

async function within(clock: Clock, probe: Promise<string | undefined>, what: string): Promise<string | undefined> {
  const late = Promise.withResolvers<string>()
  const cancel = clock.after(PROBE_TIMEOUT_MS, () => late.resolve(`the store does not answer ${what}`))
  try {
    return await Promise.race([probe, late.promise])
  } finally {
    cancel()
  }
}
