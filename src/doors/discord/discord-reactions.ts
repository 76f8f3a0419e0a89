/**
 * Shows one state of a message as a reaction. After a restart the state before is not known, so every earlier one is removed;
 * a message that arrives now has none. Each call that is not made leaves room for an answer: all calls of a bot have one limit.
 */
import type { Client } from 'discord.js'
import type { ChannelEvents, ReactionState } from '../chat/channel.ts'
import type { DiscordLibrary } from './discord-incoming.ts'

/** States that `react` remembers, so that it removes the right one. */
const SHOWN_MAX = 1000
const REACTIONS: Readonly<Record<ReactionState, string>> = {
  seen: '👀',
  running: '⏳',
  waiting: '❓',
  done: '✅',
  failed: '❌',
}

export function createReactions({ rest }: Client, { Routes }: DiscordLibrary) {
  const shown = new Map<string, ReactionState | 'none'>()
  const remember = (messageId: string, state: ReactionState | 'none') => {
    if (shown.size >= SHOWN_MAX) shown.delete(shown.keys().next().value ?? '')
    shown.set(messageId, state)
  }
  return {
    watch: (events: ChannelEvents): ChannelEvents => ({
      ...events,
      message(message) {
        // An event may come twice, after its message has a reaction already.
        if (!shown.has(message.id)) remember(message.id, 'none')
        return events.message(message)
      },
    }),
    async show(place: string, messageId: string, state: ReactionState) {
      const route = (of: ReactionState) =>
        Routes.channelMessageOwnReaction(place, messageId, encodeURIComponent(REACTIONS[of]))
      const before = shown.get(messageId)
      remember(messageId, state)
      await rest.put(route(state))
      const old = before === undefined ? (['seen', 'running', 'waiting'] as const) : [before]
      for (const other of old) {
        if (other !== 'none' && other !== state) await rest.delete(route(other)).catch(() => undefined)
      }
    },
  }
}
