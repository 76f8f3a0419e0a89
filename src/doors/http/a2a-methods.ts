/**
 * The A2A methods served here, by their 1.0 names; callers of 0.3 get the same with their own words around it. Each
 * row names the action that its caller must be allowed: rules are per method, not per route.
 */
import { MoleculeError } from '../../errors.ts'
import type { Admitted, Letter, Reception, TaskView } from '../../inbox/inbox.ts'
import type { Task } from '../../protocol/a2a.ts'
import { idempotencyKey, type ProtocolVersion, readSend, sendOptions } from '../../protocol/envelope.ts'
import { check, ID_CHARACTERS_MAX, taskIdParamsSchema } from '../../protocol/schemas.ts'
import { readTraceparent } from '../../protocol/trace.ts'
import { taskToV03 } from '../../protocol/v03.ts'
import type { A2aCall, A2aDesk, A2aResult } from './a2a-call.ts'
import { openStream, type TaskStream } from './a2a-streams.ts'
import { type Capabilities, extendedCard } from './agent-card.ts'
import { REQUEST_ID_PREFIX } from './answer.ts'
import { type Action, requireAccess, taskScope } from './auth.ts'
import { baseUrl } from './base-url.ts'
import { listTasks } from './list-tasks.ts'
import {
  acceptPush,
  createPush,
  deletePush,
  getPush,
  listPush,
  type PushCall,
  type PushDesk,
  required as requirePush,
} from './push.ts'
import type { Waiter } from './waiting.ts'

export async function callMethod(call: A2aCall, desk: A2aDesk): Promise<A2aResult> {
  const served = SERVED.get(call.method.name1_0)
  if (served === undefined) throw new MoleculeError('unsupported_operation', `${call.rpc.method} is not served here`)
  requireAccess(call.identity, served.action)
  await desk.reach(call.identity, call.workspaceId, served.action)
  return 'open' in served ? { stream: await served.open(call, desk) } : { value: await served.run(call, desk) }
}

type Served = { readonly action: Action } & (
  | { readonly run: (call: A2aCall, desk: A2aDesk) => Promise<unknown> }
  | { readonly open: (call: A2aCall, desk: A2aDesk) => Promise<TaskStream> }
)

const SERVED: ReadonlyMap<string, Served> = new Map<string, Served>([
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
export const A2A_ACTIONS: ReadonlyMap<string, Action> = new Map([...SERVED].map(([name, { action }]) => [name, action]))

/** What cards say of this server; read from the table above, so that it cannot promise what is not served. */
export const CAPABILITIES: Capabilities = {
  streaming: SERVED.has('SendStreamingMessage'),
  pushNotifications: SERVED.has('CreateTaskPushNotificationConfig'),
  extendedAgentCard: SERVED.has('GetExtendedAgentCard'),
}

async function sendMessage(call: A2aCall, desk: A2aDesk): Promise<unknown> {
  const { reception, waiting, maxBlockMs: maxMs } = desk
  const { letter, onAdmitted } = await readLetter(call, desk)
  const { blocking, historyLength } = sendOptions(letter.envelope)
  const task = blocking
    ? await waiting.during(waiterOf(call), (signal) => reception.send(letter, { maxMs, onAdmitted }, signal))
    : await admitted(call, { letter, onAdmitted }, reception)
  const sent = withHistory(await withDetail(task, call, reception), historyLength)
  return letter.envelope.version === '1.0' ? { task: sent } : taskToV03(sent)
}

async function admitted(call: A2aCall, { letter, onAdmitted }: Sent, reception: Reception): Promise<Task> {
  const admission = await reception.admit(letter)
  await onAdmitted(admission)
  return required(await reception.task(admission.taskId, scope(call)), admission.taskId)
}

/** Whoever waits: where the answer goes, and by whose token. */
const waiterOf = ({ exchange, identity }: A2aCall): Waiter => ({ response: exchange.response, identity })

async function sendStreamingMessage(call: A2aCall, desk: A2aDesk): Promise<TaskStream> {
  const { letter, onAdmitted } = await readLetter(call, desk)
  const admission = await desk.reception.admit(letter)
  await onAdmitted(admission)
  const { taskId } = admission
  const { historyLength } = sendOptions(letter.envelope)
  const view = { ...scope(call), ...(historyLength === undefined ? {} : { historyLength }) }
  return openStream(desk.reception, { taskId, view, lastEventId: lastEventId(call), endedToo: true })
}

async function subscribeToTask(call: A2aCall, { reception }: A2aDesk): Promise<TaskStream> {
  const { id: taskId } = check(taskIdParamsSchema, call.rpc.params, 'params')
  return openStream(reception, { taskId, view: scope(call), lastEventId: lastEventId(call), endedToo: false })
}

const lastEventId = ({ exchange }: A2aCall): string | undefined => exchange.request.headers['last-event-id']?.toString()

interface Sent {
  readonly letter: Letter
  /** Keeps the webhook that came with it, once there is a task to tell of. */
  readonly onAdmitted: (admitted: Admitted) => Promise<void>
}

async function readLetter(call: A2aCall, { push }: A2aDesk): Promise<Sent> {
  const { identity, workspaceId, exchange } = call
  const traceparent = readTraceparent(exchange.request.headers['traceparent'])
  const envelope = { ...readSend(call.rpc), ...(traceparent !== undefined && { traceparent }) }
  const key = headerKey(exchange.request.headers['idempotency-key']?.toString()) ?? idempotencyKey(envelope)
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

async function getExtendedCard(call: A2aCall, { workspaces, version }: A2aDesk): Promise<unknown> {
  const workspace = await workspaces.get(call.workspaceId)
  if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${call.workspaceId}`)
  const about = { base: baseUrl(call.exchange.request), version, capabilities: CAPABILITIES }
  return extendedCard(workspace, about, call.method.version)
}

async function getTask(call: A2aCall, { reception }: A2aDesk): Promise<unknown> {
  const { id, historyLength } = check(taskIdParamsSchema, call.rpc.params, 'params')
  const view = historyLength === undefined ? scope(call) : { ...scope(call), historyLength }
  const task = required(await reception.task(id, view), id)
  return inWords(task, call.method.version)
}

/** Only whoever sees the task: for others it does not exist, and neither do its webhooks. */
function pushMethod(run: (call: PushCall, desk: PushDesk) => Promise<unknown>) {
  return (call: A2aCall, { reception, push }: A2aDesk) => {
    const seq = async (id: string) => {
      const snapshot = await reception.snapshot(id, ownScope(call))
      required(snapshot?.task, id)
      return snapshot?.seq ?? 0
    }
    const { workspaceId, method, rpc } = call
    return run({ params: rpc.params, version: method.version, workspaceId, seq }, requirePush(push))
  }
}

async function cancelTask(call: A2aCall, { reception }: A2aDesk): Promise<unknown> {
  const { id } = check(taskIdParamsSchema, call.rpc.params, 'params')
  return inWords(await reception.cancel(id, ownScope(call)), call.method.version)
}

/** A workspace sees all that is said to it, but ends, and has itself told of, only what it began itself. */
function ownScope(call: A2aCall): TaskView {
  const { role, principal } = call.identity
  return role === 'workspace' ? { workspaceId: call.workspaceId, principal } : scope(call)
}

/** Whoever waited is told what everybody may know; an owner reads a failure again with what the program said. */
async function withDetail(task: Task, call: A2aCall, reception: Reception): Promise<Task> {
  const failed = task.status.message?.metadata?.['error_id'] !== undefined
  const view = scope(call)
  return failed && view.detail === true ? ((await reception.task(task.id, view)) ?? task) : task
}

function scope({ workspaceId, identity }: A2aCall): TaskView {
  return { workspaceId, ...taskScope(identity, workspaceId) }
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
