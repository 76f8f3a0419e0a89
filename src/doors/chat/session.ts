/**
 * One connected channel: its events go to the receiver, its deliveries are sent, its open tasks are followed. Messages of a
 * place are handled in order, one at a time; what was missed while the bot was away comes before what arrives now.
 */
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { shownFileName } from '../../protocol/file-name.ts'
import { createKeyedQueue, createWakeUp, onAbort, sleep, type WakeUp } from '../../wait.ts'
import { judgeInvitation } from './access.ts'
import { answerCall, runQuietly } from './answer-call.ts'
import type { Account, Channel, ChannelEvents, IncomingMessage, SendResult } from './channel.ts'
import {
  type ChatContext,
  deliveryDoor,
  doorsOf,
  firstText,
  homeDoor,
  promptDoor,
  type SessionContext,
  type ShortPost,
} from './chat-context.ts'
import { COMMAND_MENU, createCommands } from './commands/commands.ts'
import { keepNotifying } from './homes/need-notices.ts'
import { quietMs } from './homes/quiet-hours.ts'
import { createLiveMessages } from './live/live-messages.ts'
import { createPromptPosts } from './prompts/prompt-posts.ts'
import { createPrompts, type Prompts } from './prompts/prompts.ts'
import { catchUpAll } from './receive/catch-up.ts'
import { createReceiver, type Receiver } from './receive/receive.ts'
import { isHeldBack, keepDelivering } from './send/deliver.ts'
import { createFollower } from './send/follow.ts'
import { createPlaceQueues } from './send/place-queues.ts'
import { createSigns } from './send/signs.ts'
import type { StoredChannel } from './store/channels.ts'
import { type AnswerWebhook, createAnswerWebhook } from './webhook-calls.ts'

export interface Session {
  readonly account: Account
  /** Rejects when the service refuses the channel for good; resolves when the session is closed. */
  readonly ended: Promise<void>
  /** Pairings may have changed. */
  wake(): void
  /** Undefined for a channel without webhooks. */
  readonly webhook: AnswerWebhook | undefined
  close(): Promise<void>
}

const SAY_TRIES = 3
const SAY_RETRY_MS = 1000
/** A short text that a limit or a missing connection holds back for longer is no longer of use. */
const SAY_MS_MAX = 10 * 60_000
/** Then the connection is cut, and a call that goes on after this time is left alone. */
const CUT_MS_MAX = 2000
/** When the session ends, a send that has begun may take this long. Its answer counts; without it the delivery is unknown. */
const SENDING_MS_MAX = 5000

export async function openSession(stored: StoredChannel, context: ChatContext, outer: AbortSignal): Promise<Session> {
  const { clock, log, channels } = context
  const channel = await openChannel(stored, context)
  const [stopping, closing] = [new AbortController(), new AbortController()]
  const release = onAbort(outer, () => stopping.abort())
  const ended = Promise.withResolvers<void>()
  ended.promise.catch(() => undefined)
  onAbort(stopping.signal, () => ended.resolve())
  const connected = Promise.withResolvers<SessionContext & { receiver: Receiver }>()
  connected.promise.catch(() => undefined)
  const inbound = createKeyedQueue()
  const behind = new Set<string>()
  const wakeUp = createWakeUp()
  const warn = (text: string) => (error: unknown) =>
    log.warn({ err: toMoleculeError(error), channel: stored.name }, text)
  const catchUp = () =>
    catchUpAll({ context, stored, channel, inbound, behind, connected: connected.promise, signal: stopping.signal })
  try {
    await catchUp()
    const account = await channel.connect(
      {
        ...receiverEvents({ connected: connected.promise, inbound, log, warn }),
        reconnected() {
          wakeUp.wake()
          catchUp().catch(warn('what a bot missed could not be read'))
        },
        problem: (sentence) => void channels.setProblem(stored.name, sentence).catch(() => undefined),
        refused: (error) => ended.reject(error),
      },
      { commands: COMMAND_MENU },
      closing.signal,
    )
    await channels.setProblem(stored.name, undefined)
    const signals = { signal: stopping.signal, channelSignal: closing.signal, letIn: wakeUp.wake }
    const session = createSessionContext({ context, stored, channel, account, ...signals }, behind)
    await session.live.load()
    await session.receiver.resume()
    connected.resolve(session)
    const work = deliverAll(session, wakeUp)
    session.resume()
    return {
      account,
      ended: ended.promise,
      wake: session.wake,
      webhook: createAnswerWebhook(channel, clock),
      async close() {
        stopping.abort()
        release()
        await Promise.race([work, sleep(clock, SENDING_MS_MAX)])
        closing.abort()
        // A service that cannot be reached must not keep the platform from stopping.
        await Promise.race([Promise.all([work, channel.close()]), sleep(clock, CUT_MS_MAX)])
      },
    }
  } catch (error) {
    for (const controller of [stopping, closing]) controller.abort()
    release()
    connected.reject(error)
    await Promise.race([channel.close(), sleep(clock, CUT_MS_MAX)])
    throw error
  }
}

interface ReceiverEventsOptions {
  readonly connected: Promise<SessionContext & { readonly receiver: Receiver }>
  readonly inbound: (place: string, work: () => Promise<void>) => Promise<void>
  readonly log: Log
  readonly warn: (text: string) => (error: unknown) => void
}

/** What people do. An edit and a deletion run behind the messages of their place, so that the message is stored first. */
function receiverEvents({ connected, inbound, log, warn }: ReceiverEventsOptions) {
  const inPlace = (place: string, work: (receiver: Receiver) => Promise<void>) =>
    inbound(place, async () => work((await connected).receiver))
  const editLost = warn('an edit in a chat could not be stored')
  return {
    message: (message) => inPlace(message.place.id, (receiver) => receiver.message(message)),
    command: (call) => answerCall(call, async () => (await connected).receiver.command(call), log),
    press: (press) => answerCall(press, async () => (await connected).receiver.press(press), log),
    reacted: (reaction) => runQuietly(async () => (await connected).receiver.reacted(reaction), log),
    edited: (message) => inPlace(message.place.id, (receiver) => receiver.edited(message)).catch(editLost),
    deleted: (message) => inPlace(message.place, (receiver) => receiver.deleted(message)).catch(editLost),
    moved: async (from, to) => (await connected).moved(from, to),
    invited: async (person) => judgeInvitation(person, await connected),
  } satisfies Partial<ChannelEvents>
}

async function openChannel(stored: StoredChannel, { findKind, stateFolders, clock, log }: ChatContext) {
  const kind = await findKind(stored.kind)
  if (kind === undefined) throw new Error(`there is no kind of channel called ${stored.kind}`)
  const { apiUrl, ofKind } = stored.settings
  const settings = { ...ofKind, ...stored.secrets }
  const stateFolder = () => stateFolders.open(stored.name)
  return await kind.open({ token: stored.token, settings, apiUrl, stateFolder, clock, log })
}

/** Answers, prompts and what the platform says by itself have a line of their own in each place. */
async function deliverAll(
  session: SessionContext & { readonly receiver: Receiver; readonly prompts: Prompts },
  wakeUp: WakeUp,
): Promise<void> {
  const { name: channel } = session.stored
  const prompts = { ...session, door: promptDoor(channel) }
  const home: SessionContext = {
    ...session,
    door: homeDoor(channel),
    quietMs: async (place) => quietMs(await session.homes.at({ channel, place }), session.clock.nowMs()),
  }
  await Promise.all([
    keepDelivering(session, session.receiver.releaseHeld, wakeUp),
    ...[prompts, home].map((line) => keepDelivering(line, async () => undefined, createWakeUp())),
    session.prompts.keepCurrent(),
    keepNotifying(session, createPromptPosts(session)),
  ])
}

interface Connected {
  readonly context: ChatContext
  readonly stored: StoredChannel
  readonly channel: Channel
  readonly account: Account
  readonly signal: AbortSignal
  readonly channelSignal: AbortSignal
  readonly letIn: () => void
}

function createSessionContext({ context, ...connected }: Connected, behind: ReadonlySet<string>) {
  const parts = {
    ...context,
    ...connected,
    closedPrompts: new Set<string>(),
    inPlace: createPlaceQueues(),
    signs: createSigns({ ...connected, clock: context.clock }),
    door: deliveryDoor(connected.stored.name),
  }
  const session: SessionContext = {
    ...parts,
    live: createLiveMessages(parts),
    say: (post) => say(post, session),
    async moved(from, to) {
      await context.channels.move(connected.stored.name, from, to)
      for (const door of doorsOf(connected.stored.name)) await context.deliveries.move(door, from, to)
    },
  }
  const prompts = createPrompts(session)
  const follower = createFollower(session, prompts)
  const commands = createCommands({ ...session, follower, prompts })
  const receiver = createReceiver(session, { prompts, follower, commands, behind })
  const message: Receiver['message'] = (given) => receiver.message(withShownNames(given))
  const wake = () => {
    session.letIn()
    prompts.look()
  }
  return { ...session, prompts, wake, receiver: { ...receiver, message }, resume: () => void follower.resumeAll() }
}

/** The file names of a chat are cut, not refused: a person in a chat cannot shorten them. */
function withShownNames(message: IncomingMessage): IncomingMessage {
  return { ...message, files: message.files.map((file) => ({ ...file, name: shownFileName(file.name) })) }
}

/** Tries again what surely did not arrive; gives up quietly, because nothing depends on these texts. */
async function say(
  { markdown, rank = 'prompt', ...post }: ShortPost,
  context: SessionContext,
): Promise<SendResult | undefined> {
  const { channel, clock, signal, log, inPlace } = context
  const text = firstText(channel, markdown)
  if (text === undefined) return undefined
  const nonce = post.nonce ?? Math.random().toString(36).slice(2, 14)
  const endMs = clock.monotonicMs() + SAY_MS_MAX
  let result: SendResult | undefined
  for (let tries = 0; tries < SAY_TRIES && !signal.aborted && clock.monotonicMs() < endMs; ) {
    result = await inPlace(post.place, rank, () => channel.send({ ...post, text, nonce }, signal))
    if (result.type === 'sent') return result
    log.debug({ channel: context.stored.name, result }, 'a short text was not sent')
    if (result.type === 'unknown' || result.final === true) return result
    if (!isHeldBack(result)) tries += 1
    await sleep(clock, result.retryAfterMs ?? SAY_RETRY_MS, signal)
  }
  return result
}
