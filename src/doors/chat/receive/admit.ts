/**
 * A message of a chat becomes a message of its workspace: its files are downloaded, and a question that waits gets it as
 * the answer. Invariant: a message is admitted once, under its id.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { envelopeOf } from '../../../protocol/envelope.ts'
import type { Standing } from '../access.ts'
import type { IncomingMessage } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { TaskFollower } from '../send/follow.ts'
import { chatPrincipal } from '../store/channels.ts'
import type { KnownPlace } from '../store/chat-log.ts'
import { originOf } from './origin.ts'
import { admissionKey, catchRevision } from './revise.ts'
import { hearVoice } from './voice-notes.ts'

const FILES_MAX = 10
/** A turn that waits for its answer is the oldest of its place; those before it may have ended just now. */
const OPEN_LOOKED_AT_MAX = 5

interface ChatAdmission {
  readonly message: IncomingMessage
  readonly known: KnownPlace
  readonly workspaceId: string | undefined
  readonly standing: Standing
}

/** Stores the message for its workspace, or refuses it with one sentence. */
export async function admit(
  { message, known, workspaceId, standing }: ChatAdmission,
  context: SessionContext,
  follower: TaskFollower,
): Promise<void> {
  const { stored, chatLog, signs, say } = context
  const { place, author, id } = message
  const messageId = message.messageId ?? id
  const key = { channel: stored.name, place: place.id, id }
  const refuse = async (markdown: string) => {
    void signs.react({ place: place.id, messageId }, 'failed')
    await say({ place: place.id, markdown, replyTo: messageId })
    await chatLog.record({ ...key, messageId, person: author.id })
  }
  if (workspaceId === undefined) return await refuse(NO_AGENT_TEXT)
  try {
    const taskId = await sendToWorkspace({ message, known, workspaceId, standing }, context)
    const waited = await chatLog.record({ ...key, messageId, person: author.id, taskId })
    follower.follow({ ...key, messageId, person: author.id, taskId, receivedAtMs: message.sentAtMs }, workspaceId)
    await catchRevision({ message, taskId, stored: waited }, context)
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    // A copy of a message that was admitted before, in a conversation that has ended since.
    if (error.code === 'idempotency_conflict') return await meetAgain(error, message, context)
    const text = REFUSALS[error.code]
    if (text === undefined) throw error
    await refuse(text)
  }
}

/** Its author may have changed it between the admission and a kill. */
async function meetAgain(
  { details }: MoleculeError,
  { id, messageId = id, place, author, text }: IncomingMessage,
  { chatLog, reception, stored }: SessionContext,
): Promise<void> {
  const taskId = String(details?.['taskId'])
  await reception.amend({ taskId, key: admissionKey(stored.name, place.id, id) }, text)
  await chatLog.record({ channel: stored.name, place: place.id, id, messageId, person: author.id })
}

const NO_AGENT_TEXT =
  'No agent answers in this chat yet. The owner binds one with `/bind <workspace>`, or with `molecule channel bind`.'

/** Failures that a person sees; every other one is tried again by the channel. */
const REFUSALS: Partial<Record<MoleculeError['code'], string>> = {
  not_found: NO_AGENT_TEXT,
  queue_full: 'The agent has too many messages waiting, so I did not take this one. Send it again later.',
  disk_low: 'The disk of the platform is nearly full, so I did not take this message. Send it again later.',
  too_large: 'A file of this message is too large for me, so I did not take it.',
  bad_attachment: 'A file of this message could not be read, so I did not take it. Send it again.',
}

/** The id of the task. */
async function sendToWorkspace(
  { message, known, workspaceId, standing }: ChatAdmission & { readonly workspaceId: string },
  context: SessionContext,
): Promise<string> {
  const { stored, reception } = context
  const { place, author, id } = message
  const parts = await toParts(message, context)
  const waitingTask = await findWaitingTask(known, workspaceId, context)
  const key = admissionKey(stored.name, place.id, id)
  const envelope = envelopeOf({
    messageId: key,
    parts,
    contextId: known.contextId,
    ...(waitingTask !== undefined && { taskId: waitingTask }),
    metadata: { chat: originOf(message, stored.name, standing) },
  })
  const { taskId } = await reception.admit({
    workspaceId,
    principal: chatPrincipal(stored.name, place.id),
    idempotencyKey: key,
    sender: {
      kind: author.isBot ? 'program' : 'person',
      id: author.id,
      name: author.name,
      door: stored.kind,
      channel: stored.name,
    },
    envelope,
    replyTo: { door: context.door, channel: place.id, ...(!place.isDirect && { mayBeSilent: true }) },
    bytes: parts.reduce((sum, { text = '', raw = '' }) => sum + text.length + raw.length, 0),
  })
  return taskId
}

/**
 * A task of this conversation that asked a question: the message is the answer. A turn that waits for its answer keeps
 * its conversation, and messages that came later wait behind it, so the message that asks may be an earlier one.
 */
async function findWaitingTask(
  known: KnownPlace,
  workspaceId: string,
  { chatLog, reception }: SessionContext,
): Promise<string | undefined> {
  const last = await chatLog.lastOf(known)
  const oldest = (await chatLog.openIn(known)).slice(0, OPEN_LOOKED_AT_MAX)
  for (const taskId of new Set([last, ...oldest].map((message) => message?.taskId))) {
    // A place that was bound anew must not answer the question of its former agent.
    const task = taskId && (await reception.task(taskId, { workspaceId, historyLength: 0, artifacts: false }))
    if (!task || task.contextId !== known.contextId) continue
    if (task.status.state === 'TASK_STATE_INPUT_REQUIRED') return taskId
  }
  return undefined
}

async function toParts({ text, files }: IncomingMessage, context: SessionContext): Promise<Part[]> {
  const { channel, signal } = context
  if (files.length > FILES_MAX) throw new MoleculeError('too_large', `a message has at most ${FILES_MAX} files`)
  let bytesLeft = channel.limits.downloadBytesMax
  const attached: Part[] = []
  const heard: string[] = []
  for (const file of files) {
    const content = await download(() => channel.download(file, bytesLeft, signal), signal)
    bytesLeft -= content.length
    const note = await hearVoice(file, content, context)
    if (note !== undefined) heard.push(note.text)
    if (note?.isAttached === false) continue
    const type = file.mediaType === undefined ? {} : { mediaType: file.mediaType }
    attached.push({ raw: Buffer.from(content).toString('base64'), filename: file.name, ...type })
  }
  const said = heard.length === 0 ? text : [...heard, text].join('\n\n').trim()
  const typed: Part[] = said.trim() === '' && attached.length > 0 ? [] : [{ text: said }]
  return [...typed, ...attached]
}

const DOWNLOAD_TRIES = 3

async function download(get: () => Promise<Uint8Array>, signal: AbortSignal): Promise<Uint8Array> {
  for (let tries = 1; ; tries++) {
    try {
      return await get()
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      if (error.code === 'too_large') throw error
      // Prevents that a stop of the platform refuses the message: the next start takes it.
      if (signal.aborted) throw new MoleculeError('provider_unreachable', 'the channel ends', { retryable: true })
      if (tries === DOWNLOAD_TRIES)
        throw new MoleculeError('bad_attachment', 'a file could not be read', { cause: error })
    }
  }
}
