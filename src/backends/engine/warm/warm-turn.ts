/**
 * One turn on a warm agent: waits for the agent, runs the turn, then returns the process to the pool, or stops it if
 * its state is unknown. While it waits for the agent, it emits `activity`, so that the stall timeout does not fire.
 * Invariant: when this resolves, nothing that a cancelled turn started is alive except the agent itself.
 */
import type { Clock } from '../../../clock.ts'
import type { RunningProcess } from '../../../process/processes.ts'
import { type EndEvent, emitActivityDuring, type TurnStream } from '../turn-engine.ts'
import type { PooledProcess, WarmAgent, WarmLaunch, WarmPool } from './warm-pool.ts'

export interface AgentProcess extends PooledProcess {
  readonly running: RunningProcess
}

export interface WarmTurnOptions<A extends AgentProcess> {
  readonly warm: WarmPool<A>
  readonly clock: Clock
  /** The key of the agent in the pool: the id of the conversation. */
  readonly key: string
  readonly launch: WarmLaunch<A>
}

export interface WarmTurnResult {
  readonly end: EndEvent
  /** Whether the next turn may use the process. */
  readonly isUsable: boolean
  /**
   * `RunningProcess.moment()` from before the agent received the turn. If the turn is cancelled, all that the agent
   * started since then is killed. A later moment (when the agent reports its start) would miss the first processes on a
   * busy machine.
   */
  readonly since?: number | undefined
}

/** `work` runs the turn. When the signal aborts, it interrupts the agent and returns whether that worked. */
export async function runWarmTurn<A extends AgentProcess>(
  turn: WarmTurnOptions<A>,
  stream: TurnStream,
  work: (warmAgent: WarmAgent<A>) => Promise<WarmTurnResult>,
): Promise<EndEvent> {
  const taking = turn.warm.take(turn.key, turn.launch, stream.signal)
  const warmAgent = await emitActivityDuring(taking, turn.clock, stream.emit)
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

/** A turn that ended normally may leave processes on purpose (a server, a watcher). A cancelled turn may not. */
async function stopLeftovers(agent: AgentProcess, { since }: WarmTurnResult, signal: AbortSignal): Promise<boolean> {
  if (!signal.aborted || since === undefined) return true
  return agent.running.killChildrenSince(since)
}
