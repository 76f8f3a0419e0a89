/**
 * Whether the handler of a bridge works: the program on the owner's machine that runs its turns. A handler that cannot run
 * at all takes no more messages. They wait in their order, cost no attempt, and another bridge may take them. After a
 * growing delay it is checked and tries one message. A message that fails again and again also waits while the handler
 * has answered nothing else.
 * Invariant: a message is at fault only where the handler answered another one that began after that message failed.
 */
import { stepOf } from '../backoff.ts'
import type { Clock } from '../clock.ts'
import { type MoleculeError, toMoleculeError } from '../errors.ts'
import type { Lease, Outcome } from '../inbox/worker.ts'
import { failureSentence } from './failure-sentence.ts'

/** The delays before a broken handler is tried again. Later delays are as long as the last one. */
const TRY_AFTER_MS = [5_000, 10_000, 20_000, 40_000, 60_000] as const
/** Messages whose first failure is remembered. At the limit the oldest is forgotten, and counts as new. */
const SUSPECTS_MAX = 1000
/**
 * Tries of one message in three minutes. Then it goes behind the others once: perhaps only this message cannot be run, as
 * where the handler is a shell that runs the message.
 */
const TRIES_OF_ONE_MAX = 6

export interface BrokenHandler {
  /** One sentence for everyone. */
  readonly reason: string
  /** The whole error, for the owner. */
  readonly detail: string
  readonly nextTryAtMs: number
}

export interface HandlerHealthOptions {
  readonly clock: Clock
  /** Resolves if the handler can run, as far as can be known without a message; otherwise rejects with the reason. */
  readonly check: () => Promise<unknown>
  /** The handler broke, is still broken, takes messages again to try it (`isTrying`), or works again (undefined). */
  readonly onChange: (broken: BrokenHandler | undefined, isTrying: boolean) => void
}

export interface HandlerHealth {
  /** The outcome of a message that a broken handler failed. Undefined: the failure is an ordinary one. */
  outcomeOf(lease: Lease, error: MoleculeError): Outcome | undefined
  /** A message failed. True while the handler may be at fault, and not the message. */
  mayBeAtFault(lease: Lease): boolean
  began(lease: Lease): void
  ended(lease: Lease, outcome: Outcome): void
  /** How many messages the handler may have; undefined = no limit. */
  capacity(): number | undefined
  close(): void
}

/** Apart, because a handler that is removed is not the fault of a message that it has failed before. */
const SUSPECT_KINDS = ['failed', 'not_run'] as const
type SuspectKind = (typeof SUSPECT_KINDS)[number]

/** A message that failed. The numbers count such messages. */
interface Suspect {
  readonly number: number
  readonly tries: number
}

export function createHandlerHealth(options: HandlerHealthOptions): HandlerHealth {
  const { clock, check, onChange } = options
  const suspects = createSuspects()
  const running = new Map<string, { readonly isTry: boolean }>()
  let tries = 0
  let broken: BrokenHandler | undefined
  let isTrying = false
  let isClosed = false
  const delay = createDelay(clock)

  const tryAgain = async () => {
    try {
      await check()
    } catch (thrown) {
      if (!isClosed) setBroken(toMoleculeError(thrown))
      return
    }
    // Meanwhile a message may have found it working, or broken again.
    if (isClosed || broken === undefined || delay.isRunning()) return
    isTrying = true
    onChange(broken, true)
  }
  const setBroken = (error: MoleculeError): BrokenHandler => {
    // Messages that ran at the same time fail together, and count as one try.
    if (broken !== undefined && !isTrying && delay.isRunning()) return broken
    const afterMs = stepOf(TRY_AFTER_MS, tries)
    tries += 1
    isTrying = false
    const reason = failureSentence(error)?.sentence ?? 'the handler cannot run'
    broken = { reason, detail: error.message, nextTryAtMs: clock.nowMs() + afterMs }
    delay.start(afterMs, () => void tryAgain())
    onChange(broken, false)
    return broken
  }
  const setWorking = () => {
    tries = 0
    isTrying = false
    delay.end()
    if (broken === undefined) return
    broken = undefined
    onChange(undefined, false)
  }
  return {
    mayBeAtFault: (lease) => suspects.add(lease, 'failed') !== undefined,
    outcomeOf(lease, error) {
      const suspect = isBroken(error) ? suspects.add(lease, 'not_run') : undefined
      return suspect && waits(setBroken(error), { tries: suspect.tries, leftMs: delay.leftMs() })
    },
    began({ messageId }) {
      running.set(messageId, { isTry: isTrying })
      suspects.began(messageId)
    },
    ended({ messageId }, outcome) {
      const wasTry = running.get(messageId)?.isTry === true
      running.delete(messageId)
      suspects.ended(messageId, outcome)
      if (outcome.type === 'released' || outcome.type === 'stopped') return
      // Also a failure: the handler ran. A turn that began before the handler broke says nothing of it.
      if (broken === undefined || wasTry) setWorking()
    },
    capacity() {
      if (broken === undefined) return undefined
      return isTrying ? 1 : 0
    },
    close() {
      isClosed = true
      delay.end()
    },
  }
}

/**
 * From a failure until the next try. Measured by the clock that never goes back: the time of day may be corrected
 * meanwhile.
 */
function createDelay(clock: Clock) {
  let running: { readonly untilMs: number; readonly cancel: () => void } | undefined
  const end = () => {
    running?.cancel()
    running = undefined
  }
  return {
    end,
    isRunning: () => running !== undefined,
    leftMs: () => Math.max(0, (running?.untilMs ?? 0) - clock.monotonicMs()),
    start(afterMs: number, onOver: () => void) {
      end()
      const cancel = clock.after(afterMs, () => {
        running = undefined
        onOver()
      })
      running = { untilMs: clock.monotonicMs() + afterMs, cancel }
    },
  }
}

/** Messages that failed, and whether the handler has answered others since. */
function createSuspects() {
  const suspects = new Map<string, Suspect>()
  /** How many suspects there were when each running turn began. */
  const beganAfter = new Map<string, number>()
  let count = 0
  let answeredAfter = 0
  return {
    /** Counts a failure. Undefined: the message is at fault. */
    add({ messageId }: Lease, kind: SuspectKind): Suspect | undefined {
      const key = `${kind} ${messageId}`
      const known = suspects.get(key)
      if (known === undefined && suspects.size >= SUSPECTS_MAX) suspects.delete(suspects.keys().next().value ?? '')
      const { number, tries } = known ?? { number: ++count, tries: 0 }
      if (number <= answeredAfter) return undefined
      const suspect = { number, tries: tries + 1 }
      suspects.set(key, suspect)
      return suspect
    },
    began: (messageId: string) => void beganAfter.set(messageId, count),
    ended(messageId: string, { type }: Outcome) {
      if (type === 'done') answeredAfter = Math.max(answeredAfter, beganAfter.get(messageId) ?? 0)
      beganAfter.delete(messageId)
      if (type === 'done' || type === 'dead') for (const kind of SUSPECT_KINDS) suspects.delete(`${kind} ${messageId}`)
    },
  }
}

/** The handler is missing, cannot be started, or is not set up. */
const BROKEN_CODES: ReadonlySet<string> = new Set(['backend_missing', 'bad_config', 'spawn_failed'])
/** The shell found no command of that name, or may not run it. */
const BROKEN_EXIT_CODES: ReadonlySet<unknown> = new Set([126, 127])

const isBroken = ({ code, details }: MoleculeError): boolean =>
  BROKEN_CODES.has(code) || (code === 'exit' && BROKEN_EXIT_CODES.has(details['exitCode']))

/** The message keeps its place, unless another one has to go first. */
function waits(
  { reason, nextTryAtMs }: BrokenHandler,
  { tries, leftMs }: { readonly tries: number; readonly leftMs: number },
): Outcome {
  const text = `waiting: the handler of this workspace cannot run: ${reason}; next try at ${timeOfDay(nextTryAtMs)}`
  const afterMs = tries % TRIES_OF_ONE_MAX === 0 ? 2 * leftMs : 0
  return { type: 'released', interrupted: false, parked: { afterMs, said: { parts: [{ text }] } } }
}

/** `19:05:20 UTC`. */
export const timeOfDay = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`
