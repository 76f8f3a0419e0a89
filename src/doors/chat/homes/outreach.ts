/**
 * How an agent reaches people outside of its answer: in the chat that it talks to, else in home chats. A text that stands in
 * a chat of another agent begins with the name of its own.
 */
import type { Clock } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import type { Deliveries, ReplyAddress } from '../../../inbox/delivery.ts'
import type { Log } from '../../../log.ts'
import { printableName } from '../../../printable.ts'
import type { Part } from '../../../protocol/a2a.ts'
import type { ReadStore } from '../../../store/store.ts'
import { readTurnPeople } from '../../../views/chats/turn-people.ts'
import { createWakeUp } from '../../../wait.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { channelOfDoor, deliveryDoor, homeDoor } from '../chat-context.ts'
import type { Channels } from '../store/channels.ts'
import type { HomeChat, HomeChats } from '../store/home-chats.ts'
import { quietMs } from './quiet-hours.ts'
import { OWNERS, REPORTS_DOOR, readReportTarget } from './report-to.ts'

export interface Outreach {
  /**
   * Sends to the people of a turn. Where it went, for the agent: `the chat of this conversation`, `Ada's home chat`; empty where no person has
   * one. Throws `too_many_requests` for a workspace that has sent its messages of this hour.
   */
  send(from: OutreachSource, parts: readonly Part[]): Promise<readonly string[]>
  /** Sends on the answers for home chats that are due. */
  forward(): Promise<void>
}

export interface OutreachSource {
  readonly workspaceId: string
  /** Absent: the caller is no turn, so the message goes to the owners. */
  readonly conversationId?: string | undefined
}

export interface OutreachContext {
  readonly store: ReadStore
  readonly homes: HomeChats
  readonly channels: Pick<Channels, 'answering' | 'list'>
  readonly deliveries: Pick<Deliveries, 'add' | 'forward'>
  readonly workspaces: Pick<Workspaces, 'get'>
  readonly nowMs: () => number
}

export interface ForwardContext {
  readonly deliveries: Pick<Deliveries, 'watch'>
  readonly outreach: Pick<Outreach, 'forward'>
  readonly clock: Clock
  readonly log: Log
}

/** A hint of another process may be lost: then an answer is noticed within this time. */
const LOOK_MS = 5000

interface Target extends ReplyAddress {
  /** For the agent that sends. */
  readonly called: string
  /** The chat that the workspace itself answers in. */
  readonly isOwn: boolean
}

const NO_CHAT = 'no person has a home chat for it (/home in a chat with the bot makes it one), or its channel is gone'

export function createOutreach(context: OutreachContext): Outreach {
  const { deliveries } = context
  return {
    async send(source, parts) {
      const { workspaceId } = source
      const sent: string[] = []
      for (const target of await targetsOf(source, context)) {
        const { door, channel, called } = target
        const heading = await headingFor(target, workspaceId, context)
        const body = { state: 'TASK_STATE_COMPLETED', parts: [...heading, ...parts] } as const
        await deliveries.add({ id: ulid(), door, channel, workspaceId, purpose: 'message', body })
        sent.push(called)
      }
      return sent
    },
    forward: () =>
      deliveries.forward(REPORTS_DOOR, async ({ channel, workspaceId }) => ({
        addresses: await targetsOfReport(channel, workspaceId, context),
        reason: NO_CHAT,
      })),
  }
}

/** Sends answers on to home chats until the signal aborts. */
export async function keepForwarding(
  { deliveries, outreach, clock, log }: ForwardContext,
  signal: AbortSignal,
): Promise<void> {
  const wakeUp = createWakeUp()
  const stopWatching = deliveries.watch(wakeUp.wake)
  while (!signal.aborted) {
    await outreach
      .forward()
      .catch((error) =>
        log.warn({ err: toMoleculeError(error) }, 'answers for home chats wait; they are looked at again'),
      )
    await wakeUp.wait(signal, (callback) => clock.after(LOOK_MS, callback))
  }
  stopWatching()
}

async function targetsOf(
  { workspaceId, conversationId }: OutreachSource,
  context: OutreachContext,
): Promise<readonly Target[]> {
  const people = conversationId === undefined ? {} : await readTurnPeople(context.store, workspaceId, conversationId)
  const { door, channel } = people.own ?? people.root ?? { door: REPORTS_DOOR, channel: OWNERS }
  if (door === REPORTS_DOOR) return await targetsOfReport(channel, workspaceId, context)
  if (channelOfDoor(door) === undefined) return []
  const isOwn = people.own !== undefined
  return [{ door, channel, isOwn, called: isOwn ? 'the chat of this conversation' : 'the chat that the task is from' }]
}

async function targetsOfReport(
  text: string,
  workspaceId: string,
  { homes, channels, nowMs }: OutreachContext,
): Promise<readonly Target[]> {
  const target = readReportTarget(text)
  if (target.type === 'place') {
    const { channel, place } = target
    const isKnown = (await channels.list()).some(({ name }) => name === channel)
    return isKnown ? [{ door: deliveryDoor(channel), channel: place, isOwn: false, called: `the chat ${text}` }] : []
  }
  const home = target.type === 'owners' ? await homes.ofOwners(workspaceId) : [await homes.find(target)]
  const atMs = nowMs()
  return home.flatMap((one) => (one === undefined ? [] : [homeTarget(one, atMs)]))
}

function homeTarget(home: HomeChat, atMs: number): Target {
  const { channel, place, name } = home
  const later = quietMs([home], atMs) === 0 ? '' : ' (which has quiet hours now and gets it after them)'
  const called = `${printableName(name)}'s home chat${later}`
  return { door: homeDoor(channel), channel: place, isOwn: false, called }
}

/** In a chat in which another agent answers, the text says who speaks. */
async function headingFor(
  { door, channel: place, isOwn }: Target,
  workspaceId: string,
  { channels, workspaces }: OutreachContext,
): Promise<readonly Part[]> {
  const channel = channelOfDoor(door) ?? ''
  if (isOwn || (await channels.answering(channel, place)) === workspaceId) return []
  const { name = workspaceId } = (await workspaces.get(workspaceId)) ?? {}
  return [{ text: `**${printableName(name)}:** ` }]
}
