/**
 * One turn on a warm agent: waits for the agent (with a sign of life now and then, for the wait is not the agent's),
 * has the turn done, and decides what becomes of the process: back to the pool, or ended where it cannot be trusted
 * any more. Invariant: when this resolves, nothing that a cancelled turn started is alive but the agent itself.
 */
import type { Clock } from '../../../clock.ts'
import type { RunningProcess } from '../../../process/processes.ts'
import type { EndEvent, TurnStream } from '../turn-engine.ts'
import type { PooledProcess, WarmAgent, WarmLaunch, WarmPool } from './warm-pool.ts'

const ACTIVITY_INTERVAL_MS = 20_000

/** An agent with a process of its own. */
export interface AgentProcess extends PooledProcess {
  readonly running: RunningProcess
}

export interface WarmTurnOptions<A extends AgentProcess> {
  readonly warm: WarmPool<A>
  readonly clock: Clock
  /** Under which the agent is kept: the conversation's id. */
  readonly key: string
  readonly launch: WarmLaunch<A>
}

export interface WarmTurnResult {
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
export async function runWarmTurn<A extends AgentProcess>(
  turn: WarmTurnOptions<A>,
  stream: TurnStream,
  work: (warmAgent: WarmAgent<A>) => Promise<WarmTurnResult>,
): Promise<EndEvent> {
  const warmAgent = await takeAgent(turn, stream)
  let isUsable = false
  try {
    const worked = await work(warmAgent)
    isUsable = worked.isUsable && (await stopLeftovers(warmAgent.agent, worked, stream.signal))
    return worked.end
  } finally {
    if (isUsable) warmAgent.giveBack()
    else await warmAgent.discard()
  }
}

async function takeAgent<A extends AgentProcess>(
  turn: WarmTurnOptions<A>,
  { emit, signal }: TurnStream,
): Promise<WarmAgent<A>> {
  let cancelTimer: (() => void) | undefined
  const hum = () => {
    cancelTimer = turn.clock.after(ACTIVITY_INTERVAL_MS, () => {
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
async function stopLeftovers(agent: AgentProcess, { since }: WarmTurnResult, signal: AbortSignal): Promise<boolean> {
  if (!signal.aborted || since === undefined) return true
  return agent.running.killChildrenSince(since)
}
