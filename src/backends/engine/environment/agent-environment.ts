/**
 * The environment of an agent: the inherited one without secrets, the variables of the turn and the ids of its message.
 * A warm process gets only the variables that are the same for the whole conversation. With the others, it would have to
 * be restarted for each message.
 */
import { childEnvironment } from '../../../process/child-environment.ts'
import type { Request } from '../../../protocol/request.ts'
import type { BackendContext, Turn } from '../../backend.ts'

/** Variables of a single turn. A warm process does not get them. */
const TURN_VARIABLES = [
  'TRACEPARENT',
  'TRACESTATE',
  'MOLECULE_CALLER_ID',
  'MOLECULE_MESSAGE_ID',
  'MOLECULE_TASK_ID',
  'MOLECULE_METHOD',
] as const

/**
 * `session`: a warm process, kept between turns. `oneshot`: one process for each message. `text`: also one for each
 * message, started with the owner's arguments alone; what it prints is the reply.
 */
export type CliMode = 'session' | 'oneshot' | 'text'

export interface EnvironmentAdditionsOptions {
  readonly mode: CliMode
  readonly passMeta: boolean
  /** Variables of this agent, including its token. They override the others. */
  readonly own: Readonly<Record<string, string>>
}

export interface AgentEnvironmentOptions extends EnvironmentAdditionsOptions {
  readonly context: Pick<BackendContext, 'environment'>
}

export function agentEnvironment(turn: Turn, options: AgentEnvironmentOptions): Record<string, string> {
  return childEnvironment(options.context.environment, environmentAdditions(turn, options))
}

/** The variables that are not inherited: only these can differ between two turns of a backend. */
export function environmentAdditions(
  turn: Turn,
  { mode, passMeta, own }: EnvironmentAdditionsOptions,
): Record<string, string> {
  const variables: Record<string, string> = { ...turn.env, ...(passMeta && messageVariables(turn.request)) }
  if (mode === 'session') for (const name of TURN_VARIABLES) delete variables[name]
  return { ...variables, ...own }
}

/** The ids of a message as variables of a child process. */
export function messageVariables(request: Request): Record<string, string> {
  const values = {
    MOLECULE_WORKSPACE_ID: request.workspace_id,
    MOLECULE_CALLER_ID: request.caller_id,
    MOLECULE_MESSAGE_ID: request.message_id,
    MOLECULE_TASK_ID: request.task_id,
    MOLECULE_METHOD: request.method,
  }
  // A sender chooses some of the ids, and no process starts with a NUL in its environment.
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.replaceAll('\0', '')]))
}
