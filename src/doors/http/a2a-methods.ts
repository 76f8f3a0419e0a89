/**
 * The A2A methods served here, by their 1.0 names; callers of 0.3 get the same with their own words around it. Each
 * row names the action that its caller must be allowed: rules are per method, not per route.
 */
import type { ServerResponse } from 'node:http'
import { MoleculeError } from '../../errors.ts'
import type { Reception, TaskView } from '../../inbox/inbox.ts'
import type { Task } from '../../protocol/a2a.ts'
import { idempotencyKey, type ProtocolVersion, readEnvelope, sendOptions } from '../../protocol/envelope.ts'
import type { JsonRpcRequest, Method } from '../../protocol/json-rpc.ts'
import { check, ID_CHARACTERS_MAX, taskIdParamsSchema } from '../../protocol/schemas.ts'
import { taskToV03 } from '../../protocol/v03.ts'
import type { Identity } from '../../workspaces/tokens.ts'
import { type Action, requireAccess, taskScope } from './auth.ts'
import type { Waiting } from './waiting.ts'

export interface A2aCall {
  readonly rpc: JsonRpcRequest
  readonly method: Method
  readonly workspaceId: string
  readonly identity: Identity
  /** The `Idempotency-Key` header. */
  readonly givenKey: string | undefined
  readonly response: ServerResponse
}

export interface A2aDesk {
  readonly reception: Reception
  readonly waiting: Waiting
  readonly maxBlockMs: number
}

/** The method's result, in the words of the version that it was called in. */
export async function callMethod(call: A2aCall, desk: A2aDesk): Promise<unknown> {
  const served = SERVED.get(call.method.name1_0)
  if (served === undefined) {
    throw new MoleculeError('unsupported_operation', `${call.rpc.method} is not served here yet`)
  }
  requireAccess(call.identity, served.action)
  return served.run(call, desk)
}

interface Served {
  readonly action: Action
  readonly run: (call: A2aCall, desk: A2aDesk) => Promise<unknown>
}

const SERVED: ReadonlyMap<string, Served> = new Map([
  ['SendMessage', { action: 'message.send', run: sendMessage }],
  ['GetTask', { action: 'task.read', run: getTask }],
  ['CancelTask', { action: 'task.cancel', run: cancelTask }],
])

async function sendMessage(call: A2aCall, { reception, waiting, maxBlockMs }: A2aDesk): Promise<unknown> {
  const { identity, workspaceId } = call
  const envelope = readEnvelope(call.rpc)
  const { blocking, historyLength } = sendOptions(envelope)
  const key = headerKey(call.givenKey) ?? idempotencyKey(envelope)
  const { taskId } = await reception.admit({
    workspaceId,
    principal: identity.principal,
    sender: identity.sender,
    envelope,
    ...(key === undefined ? {} : { idempotencyKey: key }),
  })
  const task = blocking
    ? await waiting.during(call.response, (signal) => reception.settled(taskId, maxBlockMs, signal))
    : await reception.task(taskId, { workspaceId })
  const sent = withHistory(required(task, taskId), historyLength)
  return envelope.version === '1.0' ? { task: sent } : taskToV03(sent)
}

async function getTask(call: A2aCall, { reception }: A2aDesk): Promise<unknown> {
  const { id, historyLength } = check(taskIdParamsSchema, call.rpc.params, 'params')
  const view = historyLength === undefined ? scope(call) : { ...scope(call), historyLength }
  const task = required(await reception.task(id, view), id)
  return inWords(task, call.method.version)
}

async function cancelTask(call: A2aCall, { reception }: A2aDesk): Promise<unknown> {
  const { id } = check(taskIdParamsSchema, call.rpc.params, 'params')
  return inWords(await reception.cancel(id, scope(call)), call.method.version)
}

function scope({ workspaceId, identity }: A2aCall): TaskView {
  return { workspaceId, ...taskScope(identity) }
}

const inWords = (task: Task, version: ProtocolVersion): unknown => (version === '1.0' ? task : taskToV03(task))

function required(task: Task | undefined, id: string): Task {
  if (task !== undefined) return task
  throw new MoleculeError('not_found', `there is no task ${id}`, { details: { taskId: id } })
}

/** Unset = all, 0 = none, N = the last N messages. */
function withHistory(task: Task, historyLength: number | undefined): Task {
  if (historyLength === undefined || task.history === undefined) return task
  const { history, ...rest } = task
  return historyLength === 0 ? rest : { ...rest, history: history.slice(-historyLength) }
}

/** An empty header counts as none. */
function headerKey(given: string | undefined): string | undefined {
  if (!given) return undefined
  if (given.length <= ID_CHARACTERS_MAX) return given
  throw new MoleculeError(
    'invalid_request',
    `the Idempotency-Key header is longer than ${ID_CHARACTERS_MAX} characters`,
  )
}
