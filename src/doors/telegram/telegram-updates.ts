/**
 * What comes from Telegram: one long poll after the other. The offset of a poll confirms the updates before it, so it moves
 * on only after the door has stored an update.
 */

import type { Api } from 'grammy'
import type { Update } from 'grammy/types'
import { stepOf } from '../../backoff.ts'
import { sleep } from '../../wait.ts'
import type { ChannelEvents, ChannelOptions } from '../chat/channel.ts'
import { abortSignal } from './telegram-api.ts'
import { pollProblem, refusalOf, telegramOutcome, tokenRefused } from './telegram-errors.ts'
import { type BotAccount, toIncomingMessage, toPress, toReactions } from './telegram-messages.ts'

const POLL_S = 25
/** Of one poll. */
const UPDATES_MAX = 100
/** Two programs with one token interrupt each other at each poll: without such an interruption for so long, all is well. */
const CONFLICT_MS = 4 * POLL_S * 1000
const RETRY_MS = [1000, 2000, 5000, 15_000] as const
const CALLBACK_TEXT_CHARS_MAX = 200

interface PollContext {
  readonly events: ChannelEvents
  readonly options: ChannelOptions
  readonly me: BotAccount
}

export async function keepPolling(api: Api, context: PollContext, signal: AbortSignal): Promise<void> {
  const { events, options } = context
  const allowed_updates = ['message', 'edited_message', 'callback_query', 'message_reaction'] as const
  let offset = 0
  /** The service may have kept updates for a bot that was away. */
  let isBehind = true
  let hasProblem = false
  let wellFromMs = 0
  for (let failures = 0; !signal.aborted; ) {
    try {
      // After a failure a short poll tells at once that all is well again, and what was kept comes before what is live.
      const timeout = isBehind ? 0 : POLL_S
      const updates = await api.getUpdates({ offset, timeout, allowed_updates }, abortSignal(signal))
      failures = 0
      if (hasProblem && options.clock.monotonicMs() >= wellFromMs) {
        hasProblem = false
        events.problem(undefined)
      }
      for (const update of updates) {
        await receive({ update, isLive: !isBehind }, api, context)
        offset = update.update_id + 1
      }
      if (updates.length < UPDATES_MAX) isBehind = false
    } catch (error) {
      if (signal.aborted) return
      isBehind = true
      const refusal = refusalOf(error)
      if (refusal?.error_code === 401) return events.refused(tokenRefused())
      if (!(error instanceof UpdateNotStored)) {
        hasProblem = true
        if (refusal?.error_code === 409) wellFromMs = options.clock.monotonicMs() + CONFLICT_MS
        // The sentence about the other program stays: that one also makes the service fail in other ways.
        if (refusal?.error_code === 409 || options.clock.monotonicMs() >= wellFromMs) events.problem(pollProblem(error))
      }
      const retryMs = (refusal?.parameters?.retry_after ?? 0) * 1000
      await sleep(options.clock, Math.max(retryMs, stepOf(RETRY_MS, failures++)), signal)
    }
  }
}

/** The door could not store an update: it is not confirmed, so the service gives it again. */
class UpdateNotStored extends Error {}

/** What an update is. The service gets new kinds; one that cannot be read must not hold up all later ones. */
function readUpdate(update: Update, me: BotAccount) {
  try {
    const press = update.callback_query && toPress(update.callback_query)
    const { chat, migrate_to_chat_id } = update.message ?? {}
    const moved = chat && migrate_to_chat_id && { from: String(chat.id), to: String(migrate_to_chat_id) }
    const edited = toIncomingMessage({ update_id: update.update_id, message: update.edited_message }, me)
    const reactions = update.message_reaction && toReactions(update.message_reaction)
    return { press, moved, edited, reactions, message: toIncomingMessage(update, me) }
  } catch {
    return {}
  }
}

async function receive(
  { update, isLive }: { readonly update: Update; readonly isLive: boolean },
  api: Api,
  { events, options, me }: PollContext,
): Promise<void> {
  const { press, moved, edited, message, reactions = [] } = readUpdate(update, me)
  try {
    if (moved) await events.moved?.(moved.from, moved.to)
    if (message) await events.message({ ...message, isLive })
    if (edited) await events.edited?.(edited)
  } catch (error) {
    throw new UpdateNotStored('the update could not be stored', { cause: error })
  }
  if (press) void answerPress(press, api, { events, options })
  for (const reaction of reactions) void events.reacted?.(reaction)
}

/** Not awaited: the answer to a button edits a message, and later updates of other chats must not wait for that. */
async function answerPress(
  press: ReturnType<typeof toPress> & object,
  api: Api,
  { events, options }: Pick<PollContext, 'events' | 'options'>,
): Promise<void> {
  let isAnswered = false
  const answer = async (text: string) => {
    isAnswered = true
    await api
      .answerCallbackQuery(press.id, { text: text.slice(0, CALLBACK_TEXT_CHARS_MAX) })
      .catch((error: unknown) => {
        options.log.debug({ problem: telegramOutcome(error).error }, 'the answer to a button did not arrive')
      })
  }
  await events.press({ ...press, answer })
  // Without an answer the button shows a clock for a minute.
  if (!isAnswered) await answer('')
}
