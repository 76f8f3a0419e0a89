/**
 * The environment of an agent: what we inherited, stripped, plus what its turn gives it, plus the ids of what it works
 * on. A process that outlives its turn gets only what is the same for the whole conversation, or it would have to be
 * started anew for each message.
 */
import { childEnvironment } from '../../process/environment.ts'
import type { Request } from '../../protocol/request.ts'
import type { BackendContext, Turn } from '../backend.ts'
import type { Mode } from './cli-options.ts'

/** What is of one turn alone; a process that is kept cannot be told. */
const OF_ONE_TURN: ReadonlySet<string> = new Set([
  'TRACEPARENT',
  'MOLECULE_CALLER_ID',
  'MOLECULE_MESSAGE_ID',
  'MOLECULE_TASK_ID',
  'MOLECULE_METHOD',
])

export interface AgentEnvironment {
  readonly context: Pick<BackendContext, 'environment'>
  readonly mode: Mode
  readonly passMeta: boolean
  /** The agent's own, its token among them; they win. */
  readonly own: Readonly<Record<string, string>>
}

export function agentEnvironment(turn: Turn, given: AgentEnvironment): Record<string, string> {
  const told = { ...turn.env, ...(given.passMeta && metaOf(turn.request)) }
  const kept = Object.entries(told).filter(([name]) => given.mode === 'oneshot' || !OF_ONE_TURN.has(name))
  return childEnvironment(given.context.environment, { ...Object.fromEntries(kept), ...given.own })
}

/** The ids of a message, as its child reads them. */
export function metaOf(request: Request): Record<string, string> {
  const values = {
    MOLECULE_WORKSPACE_ID: request.workspace_id,
    MOLECULE_CALLER_ID: request.caller_id,
    MOLECULE_MESSAGE_ID: request.message_id,
    MOLECULE_TASK_ID: request.task_id,
    MOLECULE_METHOD: request.method,
  }
  // The sender chooses some of them, and with a NUL inside no process could be started at all.
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.replaceAll('\0', '')]))
}
