/**
 * Reads what was said while the bot was away, where the service has a history (GW-5). Read are the places in which the bot
 * saw a message, and the bound places with their open threads: from the last message that was seen, else from the time of
 * the binding. Invariant: what was missed in a place is handled before what arrives there later.
 */
import { toMoleculeError } from '../../../errors.ts'
import { sleep } from '../../../wait.ts'
import type { Channel, IncomingMessage, Place } from '../channel.ts'
import type { ChatContext, SessionContext } from '../chat-context.ts'
import type { StoredChannel } from '../store/channels.ts'
import type { KnownPlace } from '../store/chat-log.ts'
import type { Receiver } from './receive.ts'

/** Messages of one place that are read at once after an absence; later ones are read in the next round. */
const HISTORY_MESSAGES = 100
const HISTORY_ROUNDS_MAX = 10
/** New messages of the place wait for these tries, so that the order holds after a short failure. */
const RETRY_MS = [1000, 2000, 5000, 15_000] as const
/** Then they go on, and what was missed is read later. */
const BEHIND_MS = 60_000

export interface CatchUpOptions {
  readonly context: ChatContext
  readonly stored: StoredChannel
  readonly channel: Channel
  /** Runs the work of a place in the order of the calls; new messages of the place wait for it. */
  readonly inbound: (place: string, work: () => Promise<void>) => Promise<void>
  /** Rejects when the channel cannot be connected. */
  readonly connected: Promise<CatchUpContext>
  /** Places whose history could not be read. Their marks stay where they are, because what was missed comes after them. */
  readonly behind: Set<string>
  readonly signal: AbortSignal
}

type CatchUpContext = SessionContext & { readonly receiver: Receiver }

/** What is known of a place before anything new arrives there. */
interface MissedPlace {
  readonly place: Place
  readonly seen?: KnownPlace['seen']
  /** The time of its binding. */
  readonly boundAtMs?: number | undefined
}

/** Resolves when the work of every place is in its queue. Does nothing where the service keeps missed messages itself. */
export async function catchUpAll(options: CatchUpOptions): Promise<void> {
  const { context, stored, channel, inbound, connected, behind, signal } = options
  if (channel.history === undefined) return
  const bindings = await context.channels.bindings(stored.name)
  const bound = new Map(bindings.map(({ place, sinceMs }) => [place, sinceMs]))
  const boundAt = ({ id, parentId = id }: Place) => bound.get(id) ?? bound.get(parentId)
  const begun = new Set<string>()
  const begin = (missed: MissedPlace) => {
    begun.add(missed.place.id)
    read(missed)
  }
  const read = (missed: MissedPlace) => {
    const { id } = missed.place
    inbound(id, async () => {
      const session = await connected.catch(() => undefined)
      if (session === undefined) return
      if (behind.has(id)) await catchUp(missed, session)
      else await catchUpSoon(missed, session)
      behind.delete(id)
    }).catch((error) => {
      if (!behind.has(id)) warn(error, 'the history of a chat cannot be read; it is read later')
      behind.add(id)
      context.clock.after(BEHIND_MS, () => {
        if (!signal.aborted) read(missed)
      })
    })
  }
  const warn = (error: unknown, text: string) =>
    context.log.warn({ err: toMoleculeError(error), channel: stored.name }, text)
  for (const { description, seen } of await context.chatLog.places(stored.name)) {
    const place = JSON.parse(description) as Place
    begin({ place, ...(seen && { seen }), boundAtMs: boundAt(place) })
  }
  if (bound.size === 0) return
  const visible = await channel.places?.(signal).catch((error: unknown) => {
    warn(error, 'the places of a bot could not be read: messages in new threads may be missed')
    return []
  })
  const unknown = bindings.map(({ place: id }): Place => ({ id, isDirect: false, name: id }))
  for (const place of [...(visible ?? []), ...unknown]) {
    const boundAtMs = boundAt(place)
    if (boundAtMs !== undefined && !begun.has(place.id)) begin({ place, boundAtMs })
  }
}

async function catchUpSoon(missed: MissedPlace, context: CatchUpContext): Promise<void> {
  const { clock, log, signal, stored } = context
  for (const delayMs of RETRY_MS) {
    try {
      return await catchUp(missed, context)
    } catch (error) {
      if (signal.aborted) return
      log.debug({ err: toMoleculeError(error), channel: stored.name }, 'the history of a chat is read again')
      await sleep(clock, delayMs, signal)
    }
  }
  await catchUp(missed, context)
}

async function catchUp({ place, seen, boundAtMs }: MissedPlace, context: CatchUpContext): Promise<void> {
  const { channel, chatLog, receiver, stored, signal } = context
  const key = { channel: stored.name, place: place.id }
  /** What people said among themselves before the binding is not for the agent. */
  const counts = ({ sentAtMs, isAddressed }: IncomingMessage) =>
    boundAtMs === undefined || sentAtMs >= boundAtMs || (isAddressed && seen !== undefined)
  let from: { afterMessageId: string } | { sinceMs: number } | undefined
  if (seen !== undefined) from = { afterMessageId: seen.id }
  else if (boundAtMs !== undefined) from = { sinceMs: boundAtMs }
  for (let round = 0; round < HISTORY_ROUNDS_MAX && from !== undefined && !signal.aborted; round++) {
    const missed = (await channel.history?.({ place, limit: HISTORY_MESSAGES, ...from }, signal)) ?? []
    for (const message of missed) if (counts(message)) await receiver.message(message)
    const last = missed.at(-1)
    if (last === undefined) return
    const id = last.messageId ?? last.id
    await chatLog.place(key, JSON.stringify(last.place))
    await chatLog.markSeen(key, { id, atMs: last.sentAtMs })
    from = missed.length < HISTORY_MESSAGES ? undefined : { afterMessageId: id }
  }
}
