/**
 * The A2A methods, by their 1.0 names; callers of 0.3 get the same results in the format of 0.3. Each row names the
 * action that the caller must be allowed: access rules are per method, not per route.
 */

import { type Action, requireAccess } from '../../../api/who-may.ts'
import { MoleculeError } from '../../../errors.ts'
import { isWorkspaceId } from '../../../ids.ts'
import type { Admitted, Letter, Reception, TaskView } from '../../../inbox/reception.ts'
import type { Task } from '../../../protocol/a2a.ts'
import { idempotencyKey, type ProtocolVersion, readSend, sendOptions } from '../../../protocol/envelope.ts'
import type { A2aMethod } from '../../../protocol/json-rpc.ts'
import { ID_CHARACTERS_MAX, parseInput, taskIdParamsSchema } from '../../../protocol/schemas.ts'
import { readTraceContext } from '../../../protocol/trace-context.ts'
import { taskToV03 } from '../../../protocol/v03/v03.ts'
import { parentOf } from '../../parent-of.ts'
import { REQUEST_ID_PREFIX } from '../server/answer.ts'
import { taskScope } from '../server/auth.ts'
import { findWorkspaceId, requireWorkspace } from '../server/reach.ts'
import { type AgentCapabilities, extendedCard } from './agent-card.ts'
import type { A2aCall, A2aContext, A2aResult } from './call.ts'
import { listTasks } from './list-tasks.ts'
import {
  acceptPush,
  createPush,
  deletePush,
  getPush,
  listPush,
  type PushCall,
  type PushContext,
  requirePush,
  WEBHOOK_SECRET_HEADER,
} from './push-methods.ts'
import { openStream, type TaskStream } from './streams.ts'

/** Checks access and runs the method. A binding that must tell a denial from a failed method calls the two parts. */
export async function callMethod(given: A2aCall, context: A2aContext): Promise<A2aResult> {
  const call = isWorkspaceId(given.workspaceId) ? given : await withWorkspaceId(given, context)
  return runMethod(await authorizeCall(call, context), call, context)
}

/** The call with the id of its workspace, where the URL has the name. */
export async function withWorkspaceId(call: A2aCall, context: A2aContext): Promise<A2aCall> {
  return { ...call, workspaceId: await findWorkspaceId(call.identity, call.workspaceId, context) }
}

/** The method, if the caller may call it on this workspace. Throws `forbidden` with the reason. */
export async function authorizeCall(call: A2aCall, context: A2aContext): Promise<ServedMethod> {
  const served = SERVED_METHODS.get(call.method.name1_0)
  if (served === undefined) throw new MoleculeError('unsupported_operation', `${call.rpc.method} is not served here`)
  requireAccess(call.identity, served.action)
  await context.reach(call.identity, call.workspaceId, served.action)
  return served
}

/** `served` comes from `authorizeCall` for the same call. */
export async function runMethod(served: ServedMethod, call: A2aCall, context: A2aContext): Promise<A2aResult> {
  if ('run' in served) return { value: await served.run(call, context) }
  context.waitingCalls.countStream(call.exchange.response, call.identity)
  return { stream: await served.open(call, context) }
}

/** Whether the method answers with a stream. */
export function isStreaming({ name1_0 }: A2aMethod): boolean {
  const served = SERVED_METHODS.get(name1_0)
  return served !== undefined && 'open' in served
}

export type ServedMethod = { readonly action: Action } & (
  | { readonly run: (call: A2aCall, context: A2aContext) => Promise<unknown> }
  | { readonly open: (call: A2aCall, context: A2aContext) => Promise<TaskStream> }
)

const SERVED_METHODS: ReadonlyMap<string, ServedMethod> = new Map<string, ServedMethod>([
  ['SendMessage', { action: 'message.send', run: sendMessage }],
  ['SendStreamingMessage', { action: 'message.send', open: sendStreamingMessage }],
  ['GetTask', { action: 'task.read', run: getTask }],
  ['ListTasks', { action: 'task.read', run: listTasks }],
  ['CancelTask', { action: 'task.cancel', run: cancelTask }],
  ['SubscribeToTask', { action: 'task.read', open: subscribeToTask }],
  ['CreateTaskPushNotificationConfig', { action: 'task.push', run: pushMethod(createPush) }],
  ['GetTaskPushNotificationConfig', { action: 'task.push', run: pushMethod(getPush) }],
  ['ListTaskPushNotificationConfigs', { action: 'task.push', run: pushMethod(listPush) }],
  ['DeleteTaskPushNotificationConfig', { action: 'task.push', run: pushMethod(deletePush) }],
  ['GetExtendedAgentCard', { action: 'workspace.read', run: getExtendedCard }],
])

/** The action of each method, by its 1.0 name; for the API document. */
export const A2A_ACTIONS: ReadonlyMap<string, Action> = new Map(
  [...SERVED_METHODS].map(([name, { action }]) => [name, action]),
)

/** The capabilities on agent cards. Derived from the table above, so a card cannot promise a method that is not served. */
export const CAPABILITIES: AgentCapabilities = {
  streaming: SERVED_METHODS.has('SendStreamingMessage'),
  pushNotifications: SERVED_METHODS.has('CreateTaskPushNotificationConfig'),
  extendedAgentCard: SERVED_METHODS.has('GetExtendedAgentCard'),
}

async function sendMessage(call: A2aCall, context: A2aContext): Promise<unknown> {
  const { reception } = context
  const { letter, onAdmitted } = await readLetter(call, context)
  const { blocking, historyLength } = sendOptions(letter.envelope)
  const task = blocking
    ? await sendAndWait(call, { letter, onAdmitted }, context)
    : await admitAndReadTask(call, { letter, onAdmitted }, reception)
  const result = withHistory(await withDetail(task, call, reception), historyLength)
  return letter.envelope.version === '1.0' ? { task: result } : taskToV03(result)
}

function sendAndWait(call: A2aCall, { letter, onAdmitted }: LetterToAdmit, context: A2aContext): Promise<Task> {
  const { reception, waitingCalls, maxBlockMs: maxMs } = context
  return waitingCalls.run({ response: call.exchange.response, identity: call.identity }, async (signal) => {
    const task = await reception.send(letter, { maxMs, onAdmitted }, signal)
    if (!signal.aborted) await reception.markRead(task, call.identity, call.exchange.response)
    return task
  })
}

/** Marks no result as read, even of a task that has ended: `a2a delegate --async` shows the agent only the id. */
async function admitAndReadTask(
  call: A2aCall,
  { letter, onAdmitted }: LetterToAdmit,
  reception: Reception,
): Promise<Task> {
  const admission = await reception.admit(letter)
  await onAdmitted(admission)
  return requireTask(await reception.task(admission.taskId, taskViewOf(call)), admission.taskId)
}

async function sendStreamingMessage(call: A2aCall, context: A2aContext): Promise<TaskStream> {
  const { letter, onAdmitted } = await readLetter(call, context)
  const admission = await context.reception.admit(letter)
  await onAdmitted(admission)
  const { taskId } = admission
  const { historyLength } = sendOptions(letter.envelope)
  const view = { ...taskViewOf(call), ...(historyLength === undefined ? {} : { historyLength }) }
  return openStream(context.reception, { ...streamOf(call, taskId), view, isSubscription: false })
}

async function subscribeToTask(call: A2aCall, { reception }: A2aContext): Promise<TaskStream> {
  const { id: taskId } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  return openStream(reception, { ...streamOf(call, taskId), view: taskViewOf(call), isSubscription: true })
}

const streamOf = ({ exchange, identity }: A2aCall, taskId: string) => ({
  taskId,
  reader: identity,
  lastEventId: exchange.request.headers['last-event-id']?.toString(),
})

interface LetterToAdmit {
  readonly letter: Letter
  /** Stores the push config that came with the message, once its task exists. */
  readonly onAdmitted: (admitted: Admitted) => Promise<void>
}

async function readLetter(call: A2aCall, { push }: A2aContext): Promise<LetterToAdmit> {
  const { identity, workspaceId, exchange } = call
  const trace = readTraceContext(exchange.request.headers)
  const envelope = { ...readSend(call.rpc), ...(trace !== undefined && { trace }) }
  const key = readIdempotencyHeader(exchange.request.headers['idempotency-key']?.toString()) ?? idempotencyKey(envelope)
  const pushCall = {
    params: call.rpc.params,
    version: envelope.version,
    workspaceId,
    identity,
    trace,
    showSecret: showSecretTo(call),
  }
  const keepPush = await acceptPush(pushCall, push)
  const letter = {
    id: exchange.requestId.slice(REQUEST_ID_PREFIX.length),
    workspaceId,
    principal: identity.principal,
    sender: identity.sender,
    envelope,
    ...parentOf(identity),
    bytes: call.bytes,
    ...(key === undefined ? {} : { idempotencyKey: key }),
  }
  return {
    letter,
    async onAdmitted({ taskId }) {
      await keepPush?.(taskId)
      // The task goes on, so its webhooks have events to send again.
      if (envelope.message.taskId !== undefined) await push?.configs.nudge(workspaceId, taskId)
    },
  }
}

async function getExtendedCard(
  call: A2aCall,
  { workspaces, version, grpcPort, addresses }: A2aContext,
): Promise<unknown> {
  const workspace = await requireWorkspace(workspaces, call.workspaceId)
  const base = addresses.baseUrl(call.exchange.request)
  const options = { base, version, capabilities: CAPABILITIES, grpcPort: grpcPort?.() }
  return extendedCard(workspace, options, call.method.version)
}

async function getTask(call: A2aCall, { reception }: A2aContext): Promise<unknown> {
  const { id, historyLength } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  const view = historyLength === undefined ? taskViewOf(call) : { ...taskViewOf(call), historyLength }
  const task = requireTask(await reception.task(id, view), id)
  await reception.markRead(task, call.identity, call.exchange.response)
  return taskInVersion(task, call.method.version)
}

/** For a caller that may not end the task, the task and its push configs do not exist. */
function pushMethod(run: (call: PushCall, context: PushContext) => Promise<unknown>) {
  return (call: A2aCall, { reception, push }: A2aContext) => {
    const lastSeq = async (id: string) => {
      const snapshot = await reception.snapshot(id, ownTaskViewOf(call))
      requireTask(snapshot?.task, id)
      return snapshot?.lastSeq ?? snapshot?.seq ?? 0
    }
    const { workspaceId, method, rpc, identity } = call
    const trace = readTraceContext(call.exchange.request.headers)
    const pushCall = { params: rpc.params, version: method.version, workspaceId, identity, lastSeq, trace }
    return run({ ...pushCall, showSecret: showSecretTo(call) }, requirePush(push))
  }
}

const showSecretTo =
  ({ exchange }: A2aCall) =>
  (secret: string) =>
    void exchange.response.setHeader(WEBHOOK_SECRET_HEADER, secret)

async function cancelTask(call: A2aCall, { reception }: A2aContext): Promise<unknown> {
  const { id } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  return taskInVersion(await reception.cancel(id, ownTaskViewOf(call)), call.method.version)
}

/** A workspace sees every task sent to it, but may cancel or set webhooks only for tasks that it sent itself. */
function ownTaskViewOf(call: A2aCall): TaskView {
  const { role, principal } = call.identity
  return role === 'workspace' ? { workspaceId: call.workspaceId, principal } : taskViewOf(call)
}

/** The result of a wait has no failure detail. For a caller that may see it, a failed task is read again with it. */
async function withDetail(task: Task, call: A2aCall, reception: Reception): Promise<Task> {
  const failed = task.status.message?.metadata?.['error_id'] !== undefined
  const view = taskViewOf(call)
  return failed && view.detail === true ? ((await reception.task(task.id, view)) ?? task) : task
}

function taskViewOf({ workspaceId, identity }: A2aCall): TaskView {
  return { workspaceId, ...taskScope(identity, workspaceId) }
}

const taskInVersion = (task: Task, version: ProtocolVersion): unknown => (version === '1.0' ? task : taskToV03(task))

function requireTask(task: Task | undefined, id: string): Task {
  if (task !== undefined) return task
  throw new MoleculeError('not_found', `there is no task ${id}`, { details: { taskId: id } })
}

/** Unset = all, 0 = none, N = the last N messages. */
function withHistory(task: Task, historyLength: number | undefined): Task {
  if (historyLength === undefined || task.history === undefined) return task
  const { history, ...rest } = task
  return historyLength === 0 ? rest : { ...rest, history: history.slice(-historyLength) }
}

/** An empty header counts as absent. */
function readIdempotencyHeader(given: string | undefined): string | undefined {
  if (!given) return undefined
  if (given.length <= ID_CHARACTERS_MAX) return given
  throw new MoleculeError(
    'invalid_request',
    `the Idempotency-Key header is longer than ${ID_CHARACTERS_MAX} characters`,
  )
}
