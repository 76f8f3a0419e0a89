/**
 * The model of an ACP session: what its agent offers, what a turn wants, and the way back to what a new session gets.
 * Every turn comes here, because the model of a workspace may change while its session lives. A model that is set
 * already is not sent again.
 */
import type { NewSessionResponse, SessionConfigOption } from '@agentclientprotocol/sdk'
import { MoleculeError } from '../../../errors.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { JSON_RPC_CODES } from '../../../protocol/wire-errors.ts'
import { RpcError } from '../json-rpc.ts'
import type { AcpAgent, SessionModel } from './acp-agent.ts'
import { agentError } from './acp-errors.ts'
import type { Unchecked } from './wire.ts'

/** `models` is from before the protocol had config options; some agents still send it. */
type SessionAnswer = Unchecked<NewSessionResponse> & { readonly models?: unknown }

export function readModel({ configOptions, models }: SessionAnswer): Omit<SessionModel, 'usual'> {
  const options: readonly Unchecked<SessionConfigOption>[] = Array.isArray(configOptions)
    ? configOptions.filter(isJsonObject)
    : []
  const option = options.find(({ category, id }) => category === 'model' || id === 'model')
  const older = isJsonObject(models) ? { configId: null, current: models['currentModelId'] } : undefined
  return option === undefined
    ? (older ?? { configId: undefined, current: undefined })
    : { configId: String(option.id), current: option.currentValue }
}

/** What a new session gets, if this one has another model. */
export function modelToGoBackTo({ sessions }: AcpAgent, id: string): string | undefined {
  const { usual, current } = sessions.get(id)?.model ?? {}
  return typeof usual === 'string' && usual !== current ? usual : undefined
}

export interface ChooseSessionModelOptions {
  readonly id: string
  /** Undefined: what a new session gets. */
  readonly model: string | undefined
  readonly nowMs: number
  readonly onModelRefused: (why: string) => void
}

export async function chooseSessionModel(
  agent: AcpAgent,
  { id, model, nowMs, onModelRefused }: ChooseSessionModelOptions,
  signal: AbortSignal,
): Promise<void> {
  const session = agent.sessions.get(id)
  if (session === undefined) return
  const wanted = model ?? session.model.usual
  if (typeof wanted !== 'string' || wanted === session.model.current) return
  await requestModel(agent, { id, wanted, configId: session.model.configId, onModelRefused }, signal).catch(
    (thrown: unknown) => {
      if (!(thrown instanceof RpcError)) throw thrown
      const { message, code } = agentError(thrown, nowMs)
      if (thrown.code === JSON_RPC_CODES.methodNotFound) return onModelRefused(message)
      // The session has another model than the owner wants to pay for. Forget it, so that the next turn opens it again.
      agent.sessions.delete(id)
      // opencode offers only the models of providers to which it is logged in.
      const known = code === 'unknown_model' ? code : 'bad_config'
      throw new MoleculeError(known, `the agent refuses the model ${wanted}: ${message}`, { cause: thrown })
    },
  )
  const now = agent.sessions.get(id)
  if (now !== undefined) agent.sessions.set(id, { ...now, model: { ...now.model, current: wanted } })
}

interface RequestModelOptions
  extends Pick<ChooseSessionModelOptions, 'id' | 'onModelRefused'>,
    Pick<SessionModel, 'configId'> {
  readonly wanted: string
}

async function requestModel(
  { rpc }: AcpAgent,
  { id: sessionId, wanted, configId, onModelRefused }: RequestModelOptions,
  signal: AbortSignal,
): Promise<unknown> {
  if (configId === undefined) return onModelRefused('the agent has no way to choose a model')
  if (configId === null) return await rpc.request('session/set_model', { sessionId, modelId: wanted }, signal)
  return await rpc.request('session/set_config_option', { sessionId, configId, value: wanted }, signal)
}
