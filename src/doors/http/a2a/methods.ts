/**
 * The A2A methods served here, by their 1.0 names; callers of 0.3 get the same with their own words around it. Each
 * row names the action that its caller must be allowed: rules are per method, not per route.
 */
import { MoleculeError } from '../../../errors.ts'
import type { Admitted, Letter, Reception, TaskView } from '../../../inbox/inbox.ts'
import type { Task } from '../../../protocol/a2a.ts'
import { idempotencyKey, type ProtocolVersion, readSend, sendOptions } from '../../../protocol/envelope.ts'
import { ID_CHARACTERS_MAX, parseInput, taskIdParamsSchema } from '../../../protocol/schemas.ts'
import { readTraceparent } from '../../../protocol/traceparent.ts'
import { taskToV03 } from '../../../protocol/v03.ts'
import { REQUEST_ID_PREFIX } from '../server/answer.ts'
import { type Action, requireAccess, taskScope } from '../server/auth.ts'
import { baseUrl } from '../server/base-url.ts'
import { requireWorkspace } from '../server/reach.ts'
import type { WaitingCall } from '../server/waiting-calls.ts'
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
} from './push-methods.ts'
import { openStream, type TaskStream } from './streams.ts'

export async function callMethod(call: A2aCall, context: A2aContext): Promise<A2aResult> {
  const served = SERVED_METHODS.get(call.method.name1_0)
  if (served === undefined) throw new MoleculeError('unsupported_operation', `${call.rpc.method} is not served here`)
  requireAccess(call.identity, served.action)
  await context.reach(call.identity, call.workspaceId, served.action)
  return 'open' in served ? { stream: await served.open(call, context) } : { value: await served.run(call, context) }
}

type ServedMethod = { readonly action: Action } & (
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

/** Which action each method is, by its 1.0 name; for the API document. */
export const A2A_ACTIONS: ReadonlyMap<string, Action> = new Map(
  [...SERVED_METHODS].map(([name, { action }]) => [name, action]),
)

/** What cards say of this server; read from the table above, so that it cannot promise what is not served. */
export const CAPABILITIES: AgentCapabilities = {
  streaming: SERVED_METHODS.has('SendStreamingMessage'),
  pushNotifications: SERVED_METHODS.has('CreateTaskPushNotificationConfig'),
  extendedAgentCard: SERVED_METHODS.has('GetExtendedAgentCard'),
}

async function sendMessage(call: A2aCall, context: A2aContext): Promise<unknown> {
  const { reception, waitingCalls, maxBlockMs: maxMs } = context
  const { letter, onAdmitted } = await readLetter(call, context)
  const { blocking, historyLength } = sendOptions(letter.envelope)
  const task = blocking
    ? await waitingCalls.run(waitingCallOf(call), (signal) => reception.send(letter, { maxMs, onAdmitted }, signal))
    : await admitAndReadTask(call, { letter, onAdmitted }, reception)
  const sent = withHistory(await withDetail(task, call, reception), historyLength)
  return letter.envelope.version === '1.0' ? { task: sent } : taskToV03(sent)
}

async function admitAndReadTask(
  call: A2aCall,
  { letter, onAdmitted }: LetterToAdmit,
  reception: Reception,
): Promise<Task> {
  const admission = await reception.admit(letter)
  await onAdmitted(admission)
  return requireTask(await reception.task(admission.taskId, taskViewOf(call)), admission.taskId)
}

/** Whoever waits: where the answer goes, and by whose token. */
const waitingCallOf = ({ exchange, identity }: A2aCall): WaitingCall => ({ response: exchange.response, identity })

async function sendStreamingMessage(call: A2aCall, context: A2aContext): Promise<TaskStream> {
  const { letter, onAdmitted } = await readLetter(call, context)
  const admission = await context.reception.admit(letter)
  await onAdmitted(admission)
  const { taskId } = admission
  const { historyLength } = sendOptions(letter.envelope)
  const view = { ...taskViewOf(call), ...(historyLength === undefined ? {} : { historyLength }) }
  return openStream(context.reception, { taskId, view, lastEventId: lastEventId(call), allowEnded: true })
}

async function subscribeToTask(call: A2aCall, { reception }: A2aContext): Promise<TaskStream> {
  const { id: taskId } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  return openStream(reception, { taskId, view: taskViewOf(call), lastEventId: lastEventId(call), allowEnded: false })
}

const lastEventId = ({ exchange }: A2aCall): string | undefined => exchange.request.headers['last-event-id']?.toString()

interface LetterToAdmit {
  readonly letter: Letter
  /** Keeps the webhook that came with it, once there is a task to tell of. */
  readonly onAdmitted: (admitted: Admitted) => Promise<void>
}

async function readLetter(call: A2aCall, { push }: A2aContext): Promise<LetterToAdmit> {
  const { identity, workspaceId, exchange } = call
  const traceparent = readTraceparent(exchange.request.headers['traceparent'])
  const envelope = { ...readSend(call.rpc), ...(traceparent !== undefined && { traceparent }) }
  const key = readIdempotencyHeader(exchange.request.headers['idempotency-key']?.toString()) ?? idempotencyKey(envelope)
  const keepPush = await acceptPush({ params: call.rpc.params, version: envelope.version, workspaceId }, push)
  const letter = {
    id: exchange.requestId.slice(REQUEST_ID_PREFIX.length),
    workspaceId,
    principal: identity.principal,
    sender: identity.sender,
    envelope,
    ...(key === undefined ? {} : { idempotencyKey: key }),
  }
  return {
    letter,
    async onAdmitted({ taskId }) {
      await keepPush?.(taskId)
      // A task that goes on has something to tell again.
      if (envelope.message.taskId !== undefined) await push?.configs.nudge(workspaceId, taskId)
    },
  }
}

async function getExtendedCard(call: A2aCall, { workspaces, version }: A2aContext): Promise<unknown> {
  const workspace = await requireWorkspace(workspaces, call.workspaceId)
  const about = { base: baseUrl(call.exchange.request), version, capabilities: CAPABILITIES }
  return extendedCard(workspace, about, call.method.version)
}

async function getTask(call: A2aCall, { reception }: A2aContext): Promise<unknown> {
  const { id, historyLength } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  const view = historyLength === undefined ? taskViewOf(call) : { ...taskViewOf(call), historyLength }
  const task = requireTask(await reception.task(id, view), id)
  return taskInVersion(task, call.method.version)
}

/** Only whoever sees the task: for others it does not exist, and neither do its webhooks. */
function pushMethod(run: (call: PushCall, context: PushContext) => Promise<unknown>) {
  return (call: A2aCall, { reception, push }: A2aContext) => {
    const seq = async (id: string) => {
      const snapshot = await reception.snapshot(id, ownTaskViewOf(call))
      requireTask(snapshot?.task, id)
      return snapshot?.seq ?? 0
    }
    const { workspaceId, method, rpc } = call
    return run({ params: rpc.params, version: method.version, workspaceId, seq }, requirePush(push))
  }
}

async function cancelTask(call: A2aCall, { reception }: A2aContext): Promise<unknown> {
  const { id } = parseInput(taskIdParamsSchema, call.rpc.params, 'params')
  return taskInVersion(await reception.cancel(id, ownTaskViewOf(call)), call.method.version)
}

/** A workspace sees all that is said to it, but ends, and has itself told of, only what it began itself. */
function ownTaskViewOf(call: A2aCall): TaskView {
  const { role, principal } = call.identity
  return role === 'workspace' ? { workspaceId: call.workspaceId, principal } : taskViewOf(call)
}

/** Whoever waited is told what everybody may know; an owner reads a failure again with what the program said. */
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

/** An empty header counts as none. */
function readIdempotencyHeader(given: string | undefined): string | undefined {
  if (!given) return undefined
  if (given.length <= ID_CHARACTERS_MAX) return given
  throw new MoleculeError(
    'invalid_request',
    `the Idempotency-Key header is longer than ${ID_CHARACTERS_MAX} characters`,
  )
}
