/**
 * The environment of an agent: what we inherited, stripped, plus what its turn gives it, plus the ids of what it works
 * on. A process that outlives its turn gets only what is the same for the whole conversation, or it would have to be
 * started anew for each message.
 */
import { childEnvironment } from '../../../process/child-environment.ts'
import type { Request } from '../../../protocol/request.ts'
import type { BackendContext, Turn } from '../../backend.ts'
import type { CliMode } from '../cli/cli-options.ts'

/** What is of one turn alone; a process that is kept cannot be told. */
const TURN_VARIABLES = [
  'TRACEPARENT',
  'MOLECULE_CALLER_ID',
  'MOLECULE_MESSAGE_ID',
  'MOLECULE_TASK_ID',
  'MOLECULE_METHOD',
] as const

export interface EnvironmentAdditionsOptions {
  readonly mode: CliMode
  readonly passMeta: boolean
  /** The agent's own, its token among them; they win. */
  readonly own: Readonly<Record<string, string>>
}

export interface AgentEnvironmentOptions extends EnvironmentAdditionsOptions {
  readonly context: Pick<BackendContext, 'environment'>
}

export function agentEnvironment(turn: Turn, given: AgentEnvironmentOptions): Record<string, string> {
  return childEnvironment(given.context.environment, environmentAdditions(turn, given))
}

/** What is not inherited: all by which the environments of two turns of one backend can differ. */
export function environmentAdditions(
  turn: Turn,
  { mode, passMeta, own }: EnvironmentAdditionsOptions,
): Record<string, string> {
  const told: Record<string, string> = { ...turn.env, ...(passMeta && messageVariables(turn.request)) }
  if (mode === 'session') for (const name of TURN_VARIABLES) delete told[name]
  return { ...told, ...own }
}

/** The ids of a message, as its child reads them. */
export function messageVariables(request: Request): Record<string, string> {
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
