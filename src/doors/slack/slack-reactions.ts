/**
 * Shows one state of a message as a reaction, and reads the reactions of people. After a restart the state before is not
 * known, so every earlier one is removed. Each call that is not made leaves room for an answer.
 */
import type { ReactionState } from '../chat/channel.ts'
import type { SlackApi } from './slack-api.ts'
import { slackErrorName } from './slack-errors.ts'

/** States that `show` remembers, so that it removes the right one. */
const SHOWN_MAX = 1000
const NAMES: Readonly<Record<ReactionState, string>> = {
  seen: 'eyes',
  running: 'hourglass_flowing_sand',
  waiting: 'question',
  done: 'white_check_mark',
  failed: 'x',
}

/** What people answer with; Slack gives reactions by their names. */
const EMOJI: Readonly<Record<string, string>> = {
  '+1': '👍',
  thumbsup: '👍',
  '-1': '👎',
  thumbsdown: '👎',
  octagonal_sign: '🛑',
  white_check_mark: '✅',
  x: '❌',
  eyes: '👀',
  heart: '❤️',
}

/** Undefined for one that means nothing here. A tone of the skin is left out. */
export function emojiOf(reaction: string): string | undefined {
  const [name = ''] = reaction.split('::')
  return Object.hasOwn(EMOJI, name) ? EMOJI[name] : undefined
}

export function createReactions(api: SlackApi) {
  const shown = new Map<string, ReactionState | 'none'>()
  const remember = (key: string, state: ReactionState | 'none') => {
    if (shown.size >= SHOWN_MAX) shown.delete(shown.keys().next().value ?? '')
    shown.set(key, state)
  }
  return {
    /** A message that arrives now has no state. An event may come twice, after its message has one already. */
    arrived(channel: string, timestamp: string) {
      const key = `${channel}/${timestamp}`
      if (!shown.has(key)) remember(key, 'none')
    },
    async show(channel: string, timestamp: string, state: ReactionState) {
      const key = `${channel}/${timestamp}`
      const before = shown.get(key)
      remember(key, state)
      await api.call('reactions.add', { channel, timestamp, name: NAMES[state] }).catch((error: unknown) => {
        if (slackErrorName(error) !== 'already_reacted') throw error
      })
      const old = before === undefined ? (['seen', 'running', 'waiting'] as const) : [before]
      for (const other of old) {
        if (other === 'none' || other === state) continue
        await api.call('reactions.remove', { channel, timestamp, name: NAMES[other] }).catch(() => undefined)
      }
    },
  }
}
