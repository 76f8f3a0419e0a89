/**
 * The simple model of the inbox: plain maps, no store, no time, no groups of writes. It knows what each call does to
 * messages, tasks and conversations. Who gets a free conversation, and when, is the inbox's own choice: the model is
 * told of each lease and says whether it was a lawful one.
 */
import assert from 'node:assert/strict'
import type { Admitted, Lease, Letter, NumberedEvents, Outcome, Standing } from '../../../src/inbox/inbox.ts'

export type MessageState = 'queued' | 'leased' | 'stopping' | 'done' | 'dead' | 'canceled' | 'answer'

export interface Model {
  readonly workspaces: readonly Workspace[]
  /** By who sent what where: the name under which a message is admitted once. */
  readonly messages: Map<string, Message>
  readonly conversations: Map<string, Conversation>
  readonly tasks: Map<string, Task>
  /** Every lease that was ever handed out. */
  readonly leases: Held[]
  /** Nodes whose process is gone. */
  readonly dead: Set<string>
}

export interface Workspace {
  readonly id: string
  readonly slots: number
  /** What happened in this step: leases given, and turns that took a slot without asking for a free one. */
  leased: number
  regained: number
}

export interface Conversation {
  readonly workspace: Workspace
  readonly messages: Message[]
  epoch: number
  holder: string | undefined
  /** Its lease time is over and nobody has taken over. */
  lapsed: boolean
  /** The place of the message that was leased for the first time last. */
  lastBegun: number
}

export interface Task {
  readonly id: string
  readonly contextId: string
  readonly conversation: Conversation
  readonly messages: Message[]
  readonly letter: Letter
  state: string
}

export interface Message {
  readonly name: string
  readonly letter: Letter
  readonly task: Task
  readonly place: number
  state: MessageState
  suspended: boolean
  delayed: boolean
  failures: number
  losses: number
  interrupted: boolean
  reply: string | null
  settledEpoch: number | undefined
  outcome: Outcome['type'] | undefined
  /** What its turn asked in this attempt; at most one is open. */
  questions: Question[]
  /** Events of the current lease, events of all, results that came too late. */
  appended: number
  events: number
  late: number
  begun: boolean
  /** Its worker has heard that it is to stop. */
  toldToStop: boolean
  /** It goes from a silent worker to another, with its slot. */
  takenOver: boolean
}

export interface Question {
  readonly id: string
  state: 'open' | 'answered' | 'denied'
  answer: Message | undefined
  expired: boolean
  /** Its worker has heard the answer, or that there is none. */
  told: boolean
}

export interface Held {
  readonly lease: Lease
  readonly worker: string
  readonly message: Message
}

const LOSSES_MAX = 5

export const createModel = (workspaces: readonly { id: string; slots: number }[]): Model => ({
  workspaces: workspaces.map((workspace) => ({ ...workspace, leased: 0, regained: 0 })),
  messages: new Map(),
  conversations: new Map(),
  tasks: new Map(),
  leases: [],
  dead: new Set(),
})

export const nameOf = (workspaceId: string, principal: string, key: string) => `${workspaceId} ${principal} ${key}`
const nameOfLetter = ({ workspaceId, principal, envelope }: Letter) =>
  nameOf(workspaceId, principal, envelope.message.messageId)
const wordsOf = ({ envelope }: Letter) => envelope.message.parts[0]?.text

export const isRunning = ({ state }: Message) => state === 'leased' || state === 'stopping'
export const isUnsettled = (message: Message) => message.state === 'queued' || isRunning(message)
const isFinal = ({ state }: Task) => /(COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state)
const isInterrupted = ({ state }: Task) => /REQUIRED$/.test(state)
const headOf = ({ messages }: Conversation) => messages.find(isUnsettled)
const isCurrent = ({ lease, message }: Held) => message.task.conversation.epoch === lease.epoch && isRunning(message)
export const openQuestion = ({ questions }: Message) => questions.find(({ state }) => state === 'open')
/** The leases that still stand, whether their worker lives or not. */
export const current = ({ leases }: Model) => leases.filter(isCurrent)

// ---- the door's face

export type Verdict =
  | { readonly type: 'new' }
  | { readonly type: 'duplicate'; readonly of: Message }
  | { readonly type: 'refused'; readonly code: string }

/** What the inbox must say to a letter. */
export function judge({ messages, tasks }: Model, letter: Letter): Verdict {
  const known = messages.get(nameOfLetter(letter))
  if (known !== undefined) {
    const same = wordsOf(known.letter) === wordsOf(letter)
    return same ? { type: 'duplicate', of: known } : { type: 'refused', code: 'idempotency_conflict' }
  }
  const { taskId } = letter.envelope.message
  if (taskId === undefined) return { type: 'new' }
  const task = tasks.get(taskId)
  const { principal, workspaceId } = letter
  const own = task?.letter.principal === principal && task.letter.workspaceId === workspaceId
  if (task === undefined || !own) return { type: 'refused', code: 'not_found' }
  return isFinal(task) ? { type: 'refused', code: 'unsupported_operation' } : { type: 'new' }
}

export function admit(model: Model, letter: Letter, admitted: Admitted): void {
  assert.equal(admitted.duplicate, false)
  const task = model.tasks.get(admitted.taskId) ?? newTask(model, letter, admitted)
  const { messages } = task.conversation
  const message = newMessage(letter, task, messages.length)
  messages.push(message)
  task.messages.push(message)
  model.messages.set(message.name, message)
  const asker = task.messages.find((other) => other.state === 'leased' && openQuestion(other) !== undefined)
  if (asker !== undefined) {
    message.state = 'answer'
    Object.assign(openQuestion(asker) as Question, { state: 'answered', answer: message })
    resume(asker)
  }
  if (isInterrupted(task)) task.state = 'TASK_STATE_WORKING'
}

function newTask(model: Model, letter: Letter, { taskId, contextId }: Admitted): Task {
  const name = nameOf(letter.workspaceId, letter.principal, contextId)
  const conversation = model.conversations.get(name) ?? newConversation(model, letter.workspaceId)
  model.conversations.set(name, conversation)
  const task = { id: taskId, contextId, conversation, messages: [], letter, state: 'TASK_STATE_SUBMITTED' }
  model.tasks.set(taskId, task)
  return task
}

function newConversation({ workspaces }: Model, workspaceId: string): Conversation {
  const workspace = workspaces.find(({ id }) => id === workspaceId)
  assert.ok(workspace)
  return { workspace, messages: [], epoch: 0, holder: undefined, lapsed: false, lastBegun: -1 }
}

const newMessage = (letter: Letter, task: Task, place: number): Message => ({
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
  questions: [],
  appended: 0,
  events: 0,
  late: 0,
  begun: false,
  toldToStop: false,
  takenOver: false,
})

export function cancel(task: Task): 'canceled' | 'not_cancelable' {
  if (isFinal(task)) return task.state === 'TASK_STATE_CANCELED' ? 'canceled' : 'not_cancelable'
  for (const message of task.messages) {
    if (message.state === 'queued') Object.assign(message, { state: 'canceled', outcome: 'stopped' })
    if (message.state === 'leased') message.state = 'stopping'
  }
  task.state = 'TASK_STATE_CANCELED'
  return 'canceled'
}

// ---- the worker's face

/** A lease came: it must be lawful, and tell the truth. */
export function beLeased(model: Model, given: Lease, worker: string): void {
  const message = model.messages.get(nameOf(given.workspaceId, given.principal, given.idempotencyKey))
  assert.ok(message, 'what is leased was admitted')
  const { conversation } = message.task
  assert.equal(conversation.holder, undefined, `one turn at a time: ${conversation.holder} holds ${message.name}`)
  assert.equal(headOf(conversation), message, `${message.name} is the oldest of its conversation`)
  assert.equal(message.delayed, false, `${message.name} waits for its retry`)
  assert.deepEqual(
    [given.taskId, given.epoch, given.failures, given.losses, given.interrupted],
    [message.task.id, conversation.epoch + 1, message.failures, message.losses, message.interrupted],
  )
  if (!message.begun) {
    assert.ok(message.place > conversation.lastBegun, `${message.name} begins after those admitted before it`)
    conversation.lastBegun = message.place
  }
  if (!message.takenOver) conversation.workspace.leased += 1
  Object.assign(conversation, { epoch: given.epoch, holder: worker, lapsed: false })
  Object.assign(message, { state: 'leased', begun: true, appended: 0, takenOver: false, toldToStop: false })
  message.task.state = 'TASK_STATE_WORKING'
  model.leases.push({ lease: given, worker, message })
}

const standing = (held: Held): Standing => {
  if (!isCurrent(held)) return 'stale'
  return held.message.state === 'stopping' ? 'stop' : 'held'
}

export function extend(held: Held): Standing {
  if (isCurrent(held)) held.message.task.conversation.lapsed = false
  return standing(held)
}

export function append(held: Held, { from, events }: NumberedEvents): Standing {
  const { message } = held
  if (!isCurrent(held)) return 'stale'
  const last = Math.max(message.appended, from + events.length - 1)
  message.events += last - message.appended
  message.appended = last
  return standing(held)
}

export function suspend(held: Held): Standing {
  if (standing(held) === 'held') held.message.suspended = true
  return standing(held)
}

export function resumeHeld(held: Held): Standing {
  if (isCurrent(held)) resume(held.message)
  return standing(held)
}

function resume(message: Message): void {
  if (message.suspended) message.task.conversation.workspace.regained += 1
  message.suspended = false
}

export function ask(held: Held, id: string): Standing | 'refused' {
  if (standing(held) !== 'held') return standing(held)
  if (openQuestion(held.message) !== undefined) return 'refused'
  held.message.suspended = true
  held.message.questions.push({ id, state: 'open', answer: undefined, expired: false, told: false })
  held.message.task.state = 'TASK_STATE_INPUT_REQUIRED'
  return 'held'
}

export function settle(held: Held, outcome: Outcome, unsent: NumberedEvents): 'settled' | 'stale' {
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

function reply(message: Message, { parts, finality }: Outcome & { type: 'done' }): void {
  message.state = 'done'
  message.reply = parts[0]?.text ?? ''
  const { task } = message
  if (!task.messages.some(isUnsettled)) task.state = `TASK_STATE_${finality.toUpperCase()}`
}

function fail(task: Task): void {
  for (const message of task.messages)
    if (isUnsettled(message)) Object.assign(message, { state: 'dead', outcome: 'dead' })
  task.state = 'TASK_STATE_FAILED'
}

function putBack(message: Message, outcome: Outcome & { type: 'retry' | 'stopped' | 'released' }): void {
  message.state = 'queued'
  takeAnswersBack(message)
  message.interrupted ||= outcome.type === 'stopped' || outcome.interrupted
  if (outcome.type !== 'retry') return
  message.failures += 1
  message.delayed = outcome.afterMs > 0
  message.task.state = 'TASK_STATE_WORKING'
}

/** An answer is spent only when its turn has ended: until then it goes back into the queue. */
function takeAnswersBack({ questions }: Message): void {
  for (const { answer } of questions) if (answer !== undefined) answer.state = 'queued'
}

function free(message: Message): void {
  message.suspended = false
  message.questions = []
  Object.assign(message.task.conversation, { holder: undefined, lapsed: false })
}

// ---- what happens though nobody asks

/** Turns whose worker is known to be gone. */
function lose(message: Message): void {
  if (message.state === 'stopping') Object.assign(message, { state: 'canceled', outcome: 'stopped' })
  else {
    takeAnswersBack(message)
    message.losses += 1
    if (message.losses < LOSSES_MAX) Object.assign(message, { state: 'queued', interrupted: true })
    else fail(message.task)
  }
  free(message)
}

/** The process of a node is gone and the node is back: all that its workers held is lost. */
export function recover(model: Model, node: string): void {
  for (const { message, worker } of current(model)) if (worker.startsWith(`${node}.`)) lose(message)
}

/** A node looks after all: leases that ran out, unless its own worker holds them, and questions nobody answered. */
export function sweep(model: Model, worker: string | undefined): void {
  for (const { message, worker: holder } of current(model)) {
    const { lapsed, workspace } = message.task.conversation
    if (!lapsed || holder === worker || (worker === undefined && message.state === 'leased')) continue
    if (message.suspended) workspace.regained += 1
    lose(message)
    message.takenOver = message.state === 'queued'
  }
  for (const { message } of current(model)) {
    const question = openQuestion(message)
    if (!question?.expired || message.state !== 'leased') continue
    question.state = 'denied'
    resume(message)
    message.task.state = 'TASK_STATE_WORKING'
  }
}
