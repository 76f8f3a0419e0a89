/**
 * /retry: runs the last message of a chat again when it failed or was stopped. A dead letter of this conversation is replayed;
 * any other message is admitted anew with the same parts. Invariant: the same command twice runs the message once.
 */
import { MoleculeError } from '../../../errors.ts'
import { isFinal, type Task } from '../../../protocol/a2a.ts'
import { envelopeOf } from '../../../protocol/envelope.ts'
import { textOf } from '../../../protocol/part.ts'
import { shorten } from '../../../truncate.ts'
import { readLastTry } from '../../../views/task-work.ts'
import { answeringWorkspace } from '../chat-context.ts'
import { chatPrincipal } from '../store/channels.ts'
import type { KnownPlace } from '../store/chat-log.ts'
import { NO_AGENT } from './agent.ts'
import type { BotCommandContext, CommandInput } from './command.ts'

const WORDS_CHARACTERS_MAX = 80
/** Replays of one message that are looked through for the last one. */
const REPLAYS_MAX = 20

export async function retryLast(input: CommandInput, context: BotCommandContext): Promise<string> {
  const { chatLog, reception, stored, follower, clock } = context
  const { place, author, id } = input
  const workspaceId = await answeringWorkspace(place, context)
  if (workspaceId === undefined) return NO_AGENT
  const key = { channel: stored.name, place: place.id }
  const known = await chatLog.place(key, JSON.stringify(place))
  const last = await chatLog.lastOf(key)
  const taskId = last?.taskId && (await lastReplayOf(last.taskId, context))
  const task = taskId && (await reception.task(taskId, { artifacts: false }))
  if (last === undefined || !task) return 'There is no message to run again.'
  const { state } = task.status
  if (!isFinal(state)) return 'The last message of this chat is not finished: there is nothing to run again.'
  if (state === 'TASK_STATE_COMPLETED')
    return 'The last message of this chat was answered: there is nothing to run again.'
  const newTaskId = await runAgain({ task, known, workspaceId }, input, context)
  const { messageId } = last
  const message = { ...key, id, messageId, person: author.id, taskId: newTaskId }
  await chatLog.record(message)
  follower.follow({ ...message, receivedAtMs: clock.nowMs() }, workspaceId)
  const words = textOf(lastMessage(task)?.parts).replaceAll(/\s+/g, ' ').trim()
  return words === '' ? 'I run your last message again.' : `I run this again: ${shorten(words, WORDS_CHARACTERS_MAX)}`
}

/** A person may have replayed the dead letter in the canvas, and its replay may have failed too. */
async function lastReplayOf(taskId: string, { store }: BotCommandContext): Promise<string> {
  let last = taskId
  for (let replays = 0; replays < REPLAYS_MAX; replays++) {
    const replay = (await readLastTry(store, last))?.replayedAs
    if (replay === undefined) return last
    last = replay
  }
  return last
}

interface FailedMessage {
  readonly task: Task
  readonly known: KnownPlace
  readonly workspaceId: string
}

/** The id of the new task. */
async function runAgain(failed: FailedMessage, input: CommandInput, context: BotCommandContext): Promise<string> {
  const { task, known, workspaceId } = failed
  const tried = await readLastTry(context.store, task.id)
  const isHere = tried?.workspaceId === workspaceId && task.contextId === known.contextId
  if (isHere && tried.isDead) return await context.deadLetters.replay(workspaceId, tried.messageId)
  return await admitAnew(failed, input, context)
}

async function admitAnew(
  { task, known, workspaceId }: FailedMessage,
  { id, place, author }: CommandInput,
  { door, reception, stored }: BotCommandContext,
): Promise<string> {
  const message = lastMessage(task)
  if (message === undefined) throw new MoleculeError('not_found', 'the last message is no longer stored: send it again')
  const { parts, metadata } = message
  const key = `${stored.name}-${place.id}-${id}`
  const { taskId } = await reception.admit({
    workspaceId,
    principal: chatPrincipal(stored.name, place.id),
    idempotencyKey: key,
    sender: { kind: author.isBot ? 'program' : 'person', id: author.id, name: author.name, door: stored.kind },
    envelope: envelopeOf({ messageId: key, parts, contextId: known.contextId, ...(metadata && { metadata }) }),
    replyTo: { door, channel: place.id },
    bytes: parts.reduce((sum, { text = '', raw = '' }) => sum + text.length + raw.length, 0),
  })
  return taskId
}

const lastMessage = ({ history = [] }: Task) => history.findLast(({ role }) => role === 'ROLE_USER')
