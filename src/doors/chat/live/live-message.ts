/**
 * One live message. Invariants: its id is stored before it counts; once a delivery has taken it, nothing else edits it; it is
 * not posted while an answer of its place waits; its calls to the service come one after the other.
 */
import { sleep } from '../../../wait.ts'
import type { SendResult } from '../channel.ts'
import { firstText, type SessionContext } from '../chat-context.ts'
import type { LiveChatMessage } from '../live-seam.ts'
import type { HandledMessage } from '../store/chat-log.ts'

/** The last edit of a live message is tried so often. */
const CLOSE_TRIES = 5
const CLOSE_RETRY_MS = 1000
/** After each limit the edits of this message come half as often, down to this share. */
const SLOWNESS_MAX = 16

export interface LiveMessageOptions {
  readonly message: HandledMessage
  /** It was posted: later messages of persons whose live message is above it must know. */
  readonly posted: () => void
  /** False: an answer never replaces it. */
  readonly mayBecomeAnswer: boolean
}

type LiveContext = Pick<
  SessionContext,
  'channel' | 'chatLog' | 'clock' | 'deliveries' | 'door' | 'inPlace' | 'signal' | 'signs'
>

interface LiveState {
  readonly message: HandledMessage
  id: string | undefined
  shownText: string | undefined
  nonce: string
  isTaken: boolean
  isPassed: boolean
  /** It may be there without an id, or a person removed it: another one would only disturb. */
  isLost: boolean
  slowness: number
}

export function createLiveMessage(options: LiveMessageOptions, context: LiveContext): LiveChatMessage {
  const { message, posted, mayBecomeAnswer } = options
  const { channel, signal, signs } = context
  const state: LiveState = {
    message,
    id: message.progressId,
    shownText: undefined,
    nonce: newNonce(),
    isTaken: false,
    isPassed: false,
    isLost: false,
    slowness: 1,
  }
  let closingText = (): string => 'Over.'
  let work: Promise<unknown> = Promise.resolve()
  const inOrder = <T>(run: () => Promise<T>): Promise<T> => {
    const done = work.then(run)
    work = done.catch(() => undefined)
    return done
  }
  const show = async (markdown: string): Promise<boolean> => {
    if (state.isTaken || signal.aborted || !signs.mayShowProgress(message.place)) return false
    const text = firstText(channel, markdown)
    if (text === undefined || text === state.shownText) return text !== undefined
    const isNew = state.id === undefined
    const isDone = await (isNew ? post(text, state, context) : edit(text, state, context))
    if (isDone) state.shownText = text
    if (isDone && isNew) posted()
    return isDone
  }
  return {
    message,
    get isShown() {
      return state.id !== undefined
    },
    get isTaken() {
      return state.isTaken
    },
    get isPassed() {
      return state.isPassed
    },
    get slowness() {
      return state.slowness
    },
    show: (markdown) => inOrder(() => show(markdown)),
    close: (markdown) => inOrder(() => close(markdown ?? closingText(), state, context)),
    onClose(text) {
      closingText = text
    },
    async take() {
      state.isTaken = true
      await work
      return state.isPassed || !mayBecomeAnswer ? undefined : state.id
    },
    release: () => forget(state, context),
    pass() {
      state.isPassed = state.id !== undefined
    },
  }
}

/** True when it is there, and its id is stored. */
async function post(text: string, live: LiveState, context: LiveContext): Promise<boolean> {
  const { channel, chatLog, deliveries, door, inPlace, signal } = context
  const { message, nonce } = live
  const { place, messageId: replyTo } = message
  if (live.isLost || (await deliveries.hasOpen(door, place))) return false
  const result = await inPlace(place, 'progress', async () =>
    live.isTaken ? undefined : channel.send({ place, text, replyTo, nonce }, signal),
  )
  if (result?.type === 'failed') slowDown(result, live, context)
  // Where the service drops a second copy, the next try gives the id.
  if (result?.type === 'unknown') live.isLost = channel.limits.nonceMs === 0
  if (result?.type !== 'sent') return false
  live.nonce = newNonce()
  live.isLost = true
  await chatLog.setProgress(message, result.messageId)
  live.isLost = false
  live.id = result.messageId
  return true
}

async function edit(text: string, live: LiveState, context: LiveContext): Promise<boolean> {
  const { channel, inPlace, signal } = context
  const { place } = live.message
  const result = await inPlace(place, 'progress', async () =>
    live.isTaken || live.id === undefined ? undefined : channel.edit({ place, messageId: live.id, text }, signal),
  )
  if (result?.type === 'failed') {
    slowDown(result, live, context)
    live.isLost = result.final === true
    if (live.isLost) await forget(live, context)
  }
  return result?.type === 'sent'
}

async function close(markdown: string, live: LiveState, context: LiveContext): Promise<void> {
  const { channel, clock, inPlace, signal } = context
  const { place } = live.message
  const text = firstText(channel, markdown)
  const messageId = live.id
  if (messageId === undefined || text === undefined) return
  for (let tries = 0; tries < CLOSE_TRIES && !signal.aborted; tries++) {
    const result = await inPlace(place, 'progress', () => channel.edit({ place, messageId, text }, signal))
    if (result.type === 'sent' || (result.type === 'failed' && result.final === true))
      return await forget(live, context)
    const retryAfterMs = result.type === 'failed' ? result.retryAfterMs : undefined
    await sleep(clock, retryAfterMs ?? CLOSE_RETRY_MS, signal)
  }
}

async function forget(live: LiveState, { chatLog }: LiveContext): Promise<void> {
  live.id = undefined
  live.shownText = undefined
  live.isPassed = false
  await chatLog.setProgress(live.message, undefined)
}

function slowDown(
  { retryAfterMs }: SendResult & { type: 'failed' },
  live: LiveState,
  { signs }: Pick<LiveContext, 'signs'>,
): void {
  if (retryAfterMs === undefined) return
  signs.hold(live.message.place, retryAfterMs)
  live.slowness = Math.min(SLOWNESS_MAX, 2 * live.slowness)
}

const newNonce = (): string => Math.random().toString(36).slice(2, 14)
