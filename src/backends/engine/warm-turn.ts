/**
 * One turn on a warm agent: waits for the agent (with a sign of life now and then, for the wait is not the agent's),
 * has the turn done, and decides what becomes of the process: back to the pool, or ended where it cannot be trusted
 * any more. Invariant: when this resolves, nothing that a cancelled turn started is alive but the agent itself.
 */
import type { Clock } from '../../clock.ts'
import type { Running } from '../../process/processes.ts'
import type { EndEvent, Telling } from './turns.ts'
import type { Launch, Warm, WarmAgent, WarmLease } from './warm.ts'

const SIGN_OF_LIFE_MS = 20_000

/** An agent with a process of its own. */
export interface WarmProcess extends WarmAgent {
  readonly running: Running
}

export interface WarmTurn<A extends WarmProcess> {
  readonly warm: Warm<A>
  readonly clock: Clock
  /** Under which the agent is kept: the conversation's id. */
  readonly key: string
  readonly launch: Launch<A>
}

export interface Worked {
  readonly end: EndEvent
  /** Whether the process may be used for the next turn. */
  readonly isUsable: boolean
  /**
   * `Running.moment` from before the agent could know of the turn: what it started since then dies if the turn was
   * cancelled. Taken later, when it says that it has begun, a busy platform would miss what it started first.
   */
  readonly since?: number | undefined
}

/** `work` does the turn; when its signal aborts it interrupts the agent in the agent's own way and says how it went. */
export async function warmTurn<A extends WarmProcess>(
  turn: WarmTurn<A>,
  telling: Telling,
  work: (lease: WarmLease<A>) => Promise<Worked>,
): Promise<EndEvent> {
  const lease = await takeAgent(turn, telling)
  let isUsable = false
  try {
    const worked = await work(lease)
    isUsable = worked.isUsable && (await isClean(lease.agent, worked, telling.signal))
    return worked.end
  } finally {
    if (isUsable) lease.giveBack()
    else await lease.discard()
  }
}

async function takeAgent<A extends WarmProcess>(turn: WarmTurn<A>, { emit, signal }: Telling): Promise<WarmLease<A>> {
  let cancelTimer: (() => void) | undefined
  const hum = () => {
    cancelTimer = turn.clock.after(SIGN_OF_LIFE_MS, () => {
      emit({ type: 'activity' })
      hum()
    })
  }
  hum()
  try {
    return await turn.warm.take(turn.key, turn.launch, signal)
  } finally {
    cancelTimer?.()
  }
}

/** A turn that ended by itself may leave what it started on purpose (a server, a watcher); a cancelled one may not. */
async function isClean(agent: WarmProcess, { since }: Worked, signal: AbortSignal): Promise<boolean> {
  if (!signal.aborted || since === undefined) return true
  return agent.running.stopChildrenSince(since)
}
