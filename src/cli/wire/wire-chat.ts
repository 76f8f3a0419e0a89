/** Joins the chat door with its store and its kinds of channels, for `wire.ts`. */
import { join } from 'node:path'
import { systemClock } from '../../clock.ts'
import { type ChatDoor, createChatDoor } from '../../doors/chat/chat.ts'
import type { ChatContext } from '../../doors/chat/chat-context.ts'
import { checkChannel } from '../../doors/chat/check-channel.ts'
import { createOutreach, type Outreach } from '../../doors/chat/homes/outreach.ts'
import { createStateFolders } from '../../doors/chat/state-folders.ts'
import { createArrivals } from '../../doors/chat/store/arrivals.ts'
import { createChannels } from '../../doors/chat/store/channels.ts'
import { createChatLog } from '../../doors/chat/store/chat-log.ts'
import { createHomeChats } from '../../doors/chat/store/home-chats.ts'
import { createPairings } from '../../doors/chat/store/pairings.ts'
import { createPromptLog } from '../../doors/chat/store/prompt-log.ts'
import type { ChatRoutesContext } from '../../doors/http/routes/route.ts'
import { ulid } from '../../ids.ts'
import type { LocalInbox } from '../../inbox/local/local-inbox.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { MaskingLog } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { ChannelKinds } from '../channel-kinds.ts'

export interface WireChatOptions {
  readonly store: Store
  readonly inbox: LocalInbox
  readonly reception: Reception
  readonly workspaces: ChatContext['workspaces']
  readonly lifecycle: ChatContext['lifecycle']
  readonly logs: ChatContext['logs']
  readonly channelKinds: ChannelKinds
  readonly log: MaskingLog
  readonly host: string
  readonly transcribe: ChatContext['transcribe']
  readonly dataDir: string
}

export interface WiredChat {
  readonly chatDoor: ChatDoor
  /** What the routes of channels and pairings need. */
  readonly chat: ChatRoutesContext
  readonly outreach: Outreach
}

export function wireChat(options: WireChatOptions): WiredChat {
  const { store, inbox, reception, workspaces, lifecycle, logs, channelKinds, log, host, dataDir } = options
  const stored = createChannels(store)
  const pairings = createPairings(store)
  /** Tokens and other secrets of channels never reach the log. */
  const channels: typeof stored = {
    ...stored,
    async list() {
      const all = await stored.list()
      for (const { token, secrets = {} } of all)
        for (const secret of [token, ...Object.values(secrets)]) log.hide(secret)
      return all
    },
  }
  const homes = createHomeChats(store)
  const outreach = createOutreach({
    store: inbox.store,
    homes,
    channels,
    deliveries: inbox.deliveries,
    workspaces,
    nowMs: systemClock.nowMs,
  })
  const chatDoor = createChatDoor({
    channels,
    homes,
    outreach,
    pairings,
    chatLog: createChatLog(store),
    promptLog: createPromptLog(store),
    arrivals: createArrivals(store),
    reception,
    workspaces,
    lifecycle,
    logs,
    store: inbox.store,
    pending: inbox.pendingAsks,
    budgets: inbox.budgets,
    deadLetters: inbox.deadLetters,
    deliveries: inbox.deliveries,
    log,
    transcribe: options.transcribe,
    clock: systemClock,
    findKind: channelKinds.find,
    stateFolders: createStateFolders(join(dataDir, 'channels')),
    holder: `${host}.${ulid()}`,
  })
  const chat: ChatRoutesContext = {
    channels,
    pairings,
    wake: chatDoor.wake,
    endDeliveries: inbox.deliveries.endDoor,
    requireKind: channelKinds.require,
    findWebhook: chatDoor.findWebhook,
    check: (given, signal) =>
      checkChannel(given, { requireKind: channelKinds.require, hide: log.hide, clock: systemClock, log }, signal),
  }
  return { chatDoor, chat, outreach }
}
