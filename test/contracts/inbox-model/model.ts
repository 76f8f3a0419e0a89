/**
 * The model of the inbox: plain maps, no store, no time, no batches of writes. It knows what each call does to
 * messages, tasks and conversations. Which worker gets a free conversation, and when, is the inbox's own choice: the
 * model is given each lease and asserts that it was allowed.
 */
import assert from 'node:assert/strict'
import type { Admitted, Letter } from '../../../src/inbox/reception.ts'
import type { Lease, LeaseStanding, NumberedEvents, Outcome, RenewedStanding } from '../../../src/inbox/worker.ts'
import type { Message } from '../../../src/protocol/a2a.ts'

export type ModelMessageState = 'queued' | 'leased' | 'stopping' | 'done' | 'dead' | 'canceled' | 'answer'

export interface InboxModel {
  readonly workspaces: readonly ModelWorkspace[]
  /** By workspace, principal, message id and text: under this name a message is admitted once. */
  readonly messages: Map<string, ModelMessage>
  readonly conversations: Map<string, ModelConversation>
  readonly tasks: Map<string, ModelTask>
  /** Every lease that a worker ever received. */
  readonly leases: HeldLease[]
  /** Nodes whose process is gone. */
  readonly dead: Set<string>
}

export interface ModelWorkspace {
  readonly id: string
  readonly slots: number
  /** In this step: new leases, and turns that took a slot back without a free one. */
  leased: number
  regained: number
}

export interface ModelConversation {
  readonly workspace: ModelWorkspace
  readonly messages: ModelMessage[]
  epoch: number
  holder: string | undefined
  /** The lease ran out, and no worker has taken over. */
  lapsed: boolean
  /** The place of the last message that was leased for the first time. */
  lastLeased: number
}

export interface ModelTask {
  readonly id: string
  readonly contextId: string
  readonly conversation: ModelConversation
  readonly messages: ModelMessage[]
  readonly letter: Letter
  state: string
}

export interface ModelMessage {
  readonly name: string
  readonly letter: Letter
  readonly task: ModelTask
  readonly place: number
  state: ModelMessageState
  suspended: boolean
  delayed: boolean
  failures: number
  losses: number
  interrupted: boolean
  reply: string | null
  settledEpoch: number | undefined
  outcome: Outcome['type'] | undefined
  /** The asks of this attempt; at most one is open. */
  asks: ModelAsk[]
  /** Events of the current lease, events of all leases, late results. */
  appended: number
  events: number
  late: number
  /** It was leased at least once. */
  leasedBefore: boolean
  /** The turn of the current lease has begun: a vanished worker counts as a loss. */
  begun: boolean
  /** Its worker has received the stop. */
  stopReceived: boolean
  /** A takeover moves it to another worker, with its slot. */
  takenOver: boolean
}

export interface ModelAsk {
  readonly id: string
  state: 'open' | 'answered' | 'denied'
  answer: ModelMessage | undefined
  expired: boolean
  /** Its worker has received the answer or the denial. */
  delivered: boolean
}

export interface HeldLease {
  readonly lease: Lease
  readonly worker: string
  readonly message: ModelMessage
}

const LOSSES_MAX = 5

export const createModel = (workspaces: readonly { id: string; slots: number }[]): InboxModel => ({
  workspaces: workspaces.map((workspace) => ({ ...workspace, leased: 0, regained: 0 })),
  messages: new Map(),
  conversations: new Map(),
  tasks: new Map(),
  leases: [],
  dead: new Set(),
})

export const nameOf = (workspaceId: string, principal: string, key: string) => `${workspaceId} ${principal} ${key}`
/** Other content under the same message id is another message. */
const nameOfLetter = ({ workspaceId, principal, envelope }: Letter) =>
  nameOf(workspaceId, principal, nameOfMessage(envelope.message))
export const nameOfMessage = ({ messageId, parts }: Message) => `${messageId} ${parts[0]?.text}`

const hasSameKey = (one: Letter, other: Letter) =>
  one.workspaceId === other.workspaceId &&
  one.principal === other.principal &&
  one.idempotencyKey === other.idempotencyKey

export const isRunning = ({ state }: ModelMessage) => state === 'leased' || state === 'stopping'
export const isUnsettled = (message: ModelMessage) => message.state === 'queued' || isRunning(message)
const isFinal = ({ state }: ModelTask) => /(COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state)
const isInterrupted = ({ state }: ModelTask) => /REQUIRED$/.test(state)
const headOf = ({ messages }: ModelConversation) => messages.find(isUnsettled)
const isCurrent = ({ lease, message }: HeldLease) =>
  message.task.conversation.epoch === lease.epoch && isRunning(message)
export const openAsk = ({ asks }: ModelMessage) => asks.find(({ state }) => state === 'open')
/** The current leases, whether their worker is alive or not. */
export const current = ({ leases }: InboxModel) => leases.filter(isCurrent)

// ---- the door side

export type ExpectedAdmission =
  | { readonly type: 'new' }
  | { readonly type: 'duplicate'; readonly of: ModelMessage }
  | { readonly type: 'refused'; readonly code: string }

/** The answer that the inbox must give to a letter. */
export function expectAdmission({ messages, tasks }: InboxModel, letter: Letter): ExpectedAdmission {
  const known = messages.get(nameOfLetter(letter))
  if (known !== undefined) return { type: 'duplicate', of: known }
  if (letter.idempotencyKey !== undefined && [...messages.values()].some((other) => hasSameKey(other.letter, letter))) {
    return { type: 'refused', code: 'idempotency_conflict' }
  }
  const { taskId } = letter.envelope.message
  if (taskId === undefined) return { type: 'new' }
  const task = tasks.get(taskId)
  const { principal, workspaceId } = letter
  const own = task?.letter.principal === principal && task.letter.workspaceId === workspaceId
  if (task === undefined || !own) return { type: 'refused', code: 'not_found' }
  return isFinal(task) ? { type: 'refused', code: 'unsupported_operation' } : { type: 'new' }
}

export function admit(model: InboxModel, letter: Letter, admitted: Admitted): void {
  assert.equal(admitted.duplicate, false)
  const task = model.tasks.get(admitted.taskId) ?? newTask(model, letter, admitted)
  const { messages } = task.conversation
  const message = newMessage(letter, task, messages.length)
  messages.push(message)
  task.messages.push(message)
  model.messages.set(message.name, message)
  const asker = task.messages.find((other) => other.state === 'leased' && openAsk(other) !== undefined)
  if (asker !== undefined) {
    message.state = 'answer'
    Object.assign(openAsk(asker) as ModelAsk, { state: 'answered', answer: message })
    resume(asker)
  }
  if (isInterrupted(task)) task.state = 'TASK_STATE_WORKING'
}

function newTask(model: InboxModel, letter: Letter, { taskId, contextId }: Admitted): ModelTask {
  const name = nameOf(letter.workspaceId, letter.principal, contextId)
  const conversation = model.conversations.get(name) ?? newConversation(model, letter.workspaceId)
  model.conversations.set(name, conversation)
  const task = { id: taskId, contextId, conversation, messages: [], letter, state: 'TASK_STATE_SUBMITTED' }
  model.tasks.set(taskId, task)
  return task
}

function newConversation({ workspaces }: InboxModel, workspaceId: string): ModelConversation {
  const workspace = workspaces.find(({ id }) => id === workspaceId)
  assert.ok(workspace)
  return { workspace, messages: [], epoch: 0, holder: undefined, lapsed: false, lastLeased: -1 }
}

const newMessage = (letter: Letter, task: ModelTask, place: number): ModelMessage => ({
  name: nameOfLetter(letter),
  letter,
  task,
  place,
  state: 'queued',
  suspended: false,
  delayed: false,
  failures: 0,
  losses: 0,
  interrupted: false,
  reply: null,
  settledEpoch: undefined,
  outcome: undefined,
  asks: [],
  appended: 0,
  events: 0,
  late: 0,
  leasedBefore: false,
  begun: false,
  stopReceived: false,
  takenOver: false,
})

export function cancel(task: ModelTask): 'canceled' | 'not_cancelable' {
  if (isFinal(task)) return task.state === 'TASK_STATE_CANCELED' ? 'canceled' : 'not_cancelable'
  for (const message of task.messages) {
    if (message.state === 'queued') Object.assign(message, { state: 'canceled', outcome: 'stopped' })
    if (message.state !== 'leased') continue
    message.state = 'stopping'
    // What it has written stays. Each event of the model is one letter.
    if (message.appended > 0) message.reply = 'x'.repeat(message.appended)
  }
  task.state = 'TASK_STATE_CANCELED'
  return 'canceled'
}

// ---- the worker side

/** A worker received a lease: it must be allowed, and its counters must be right. */
export function recordLease(model: InboxModel, given: Lease, worker: string): void {
  const message = model.messages.get(nameOf(given.workspaceId, given.principal, nameOfMessage(given.envelope.message)))
  assert.ok(message, 'a leased message was admitted')
  const { conversation } = message.task
  assert.equal(conversation.holder, undefined, `one turn at a time: ${conversation.holder} holds ${message.name}`)
  assert.equal(headOf(conversation), message, `${message.name} is the oldest of its conversation`)
  assert.equal(message.delayed, false, `${message.name} waits for its retry`)
  assert.deepEqual(
    [given.taskId, given.epoch, given.failures, given.losses, given.interrupted],
    [message.task.id, conversation.epoch + 1, message.failures, message.losses, message.interrupted],
  )
  if (!message.leasedBefore) {
    assert.ok(message.place > conversation.lastLeased, `${message.name} begins after those admitted before it`)
    conversation.lastLeased = message.place
  }
  if (!message.takenOver) conversation.workspace.leased += 1
  Object.assign(conversation, { epoch: given.epoch, holder: worker, lapsed: false })
  const lease = { leasedBefore: true, begun: false, appended: 0, takenOver: false, stopReceived: false }
  Object.assign(message, { state: 'leased', ...lease })
  message.task.state = 'TASK_STATE_WORKING'
  model.leases.push({ lease: given, worker, message })
}

const standing = (held: HeldLease): LeaseStanding => {
  if (!isCurrent(held)) return 'stale'
  return held.message.state === 'stopping' ? 'stop' : 'held'
}

export function extend(held: HeldLease): RenewedStanding {
  if (isCurrent(held)) held.message.task.conversation.lapsed = false
  return standing(held) === 'held' && held.message.suspended ? 'waiting' : standing(held)
}

export function begin(held: HeldLease): LeaseStanding {
  if (standing(held) === 'held') held.message.begun = true
  return standing(held)
}

export function append(held: HeldLease, { from, events }: NumberedEvents): LeaseStanding {
  const { message } = held
  if (!isCurrent(held)) return 'stale'
  const last = Math.max(message.appended, from + events.length - 1)
  message.events += last - message.appended
  message.appended = last
  message.begun = true
  return standing(held)
}

export function suspend(held: HeldLease): LeaseStanding {
  if (standing(held) === 'held') held.message.suspended = true
  return standing(held)
}

export function resumeHeld(held: HeldLease): LeaseStanding {
  if (isCurrent(held)) resume(held.message)
  return standing(held)
}

function resume(message: ModelMessage): void {
  if (message.suspended) message.task.conversation.workspace.regained += 1
  message.suspended = false
}

export function ask(held: HeldLease, id: string): LeaseStanding | 'refused' {
  if (standing(held) !== 'held') return standing(held)
  if (openAsk(held.message) !== undefined) return 'refused'
  held.message.suspended = true
  held.message.asks.push({ id, state: 'open', answer: undefined, expired: false, delivered: false })
  held.message.task.state = 'TASK_STATE_INPUT_REQUIRED'
  return 'held'
}

export function settle(held: HeldLease, outcome: Outcome, unsent: NumberedEvents): 'settled' | 'stale' {
  const { lease: given, message } = held
  if (message.settledEpoch === given.epoch) return message.outcome === outcome.type ? 'settled' : 'stale'
  if (!isCurrent(held)) {
    if (outcome.type === 'done') message.late += 1
    return 'stale'
  }
  append(held, unsent)
  if (message.state === 'stopping') message.state = 'canceled'
  else if (outcome.type === 'done') reply(message, outcome)
  else if (outcome.type === 'dead') {
    message.failures += 1
    fail(message.task)
  } else putBack(message, outcome)
  Object.assign(message, { settledEpoch: given.epoch, outcome: outcome.type })
  free(message)
  return 'settled'
}

function reply(message: ModelMessage, { parts, finality }: Outcome & { type: 'done' }): void {
  message.state = 'done'
  message.reply = parts[0]?.text ?? ''
  const { task } = message
  if (!task.messages.some(isUnsettled)) task.state = `TASK_STATE_${finality.toUpperCase()}`
}

function fail(task: ModelTask): void {
  for (const message of task.messages)
    if (isUnsettled(message)) Object.assign(message, { state: 'dead', outcome: 'dead' })
  task.state = 'TASK_STATE_FAILED'
}

function putBack(message: ModelMessage, outcome: Outcome & { type: 'retry' | 'stopped' | 'released' }): void {
  message.state = 'queued'
  takeAnswersBack(message)
  message.interrupted ||= outcome.type === 'stopped' || outcome.interrupted
  if (outcome.type !== 'retry') return
  message.failures += 1
  message.delayed = outcome.afterMs > 0
  message.task.state = 'TASK_STATE_WORKING'
}

/** An answer is used up only when its turn has ended: until then it goes back into the queue. */
function takeAnswersBack({ asks }: ModelMessage): void {
  for (const { answer } of asks) if (answer !== undefined) answer.state = 'queued'
}

function free(message: ModelMessage): void {
  message.suspended = false
  message.asks = []
  Object.assign(message.task.conversation, { holder: undefined, lapsed: false })
}

// ---- what happens without a caller

/** The worker of the turn is gone. */
function lose(message: ModelMessage): void {
  if (message.state === 'stopping') Object.assign(message, { state: 'canceled', outcome: 'stopped' })
  else {
    takeAnswersBack(message)
    if (message.begun) message.losses += 1
    if (message.losses >= LOSSES_MAX) fail(message.task)
    else Object.assign(message, { state: 'queued', interrupted: message.interrupted || message.begun })
  }
  free(message)
}

/** A node restarts: every lease of its earlier process is lost. */
export function recover(model: InboxModel, node: string): void {
  for (const { message, worker } of current(model)) if (worker.startsWith(`${node}.`)) lose(message)
}

/** A sweep of a node: takes over leases that ran out, except its own worker's, and denies asks that timed out. */
export function sweep(model: InboxModel, worker: string | undefined): void {
  for (const { message, worker: holder } of current(model)) {
    const { lapsed, workspace } = message.task.conversation
    if (!lapsed || holder === worker || (worker === undefined && message.state === 'leased')) continue
    if (message.suspended) workspace.regained += 1
    lose(message)
    message.takenOver = message.state === 'queued'
  }
  for (const { message } of current(model)) {
    const question = openAsk(message)
    if (!question?.expired || message.state !== 'leased') continue
    question.state = 'denied'
    resume(message)
    message.task.state = 'TASK_STATE_WORKING'
  }
}
