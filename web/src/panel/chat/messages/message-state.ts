/** The state of a message in the words of the page: `queued · behind 2`, `answered · 6.2 s · $0.03`. Pure. */
import type { ChatMessageView } from '../../../../../src/client/live-conversation.ts'
import { truncate } from '../../../../../src/truncate.ts'
import { plainReason } from '../../../api/sentence.ts'
import { clockTime, costText, countText, tookTime } from '../../../ui/text/times.ts'

export interface StatePart {
  readonly text: string
  /** Unknown values are in italics. */
  readonly isUnknown?: boolean
  /** A time that runs: the page shows the seconds since then. */
  readonly since?: string
}

export interface MessageStateText {
  readonly parts: readonly StatePart[]
  /** Red is for what needs a person. */
  readonly isRed: boolean
  /** What a person may do about it. `replay` and `run again` have the same words. */
  readonly action?: 'replay' | 'run again' | 'cancel'
  /** There is a story to tell: why it failed, or why it waits. */
  readonly hasStory: boolean
}

interface PlacedMessage extends ChatMessageView {
  /** "Run again" has sent it as a new message. */
  readonly wasRunAgain?: boolean
}

const part = (text: string): StatePart => ({ text })

export function messageState(message: PlacedMessage): MessageStateText {
  const calm = { isRed: false, hasStory: false }
  switch (message.state) {
    case 'queued':
      return { ...calm, parts: [part('queued'), ...placeOf(message)], action: 'cancel' }
    case 'running':
      return { ...calm, parts: [part('running'), ...runningSince(message)] }
    case 'waiting_for_you':
      return { ...calm, parts: [part('waiting for you'), ...runningSince(message)] }
    case 'rate_limited':
      return {
        ...calm,
        hasStory: true,
        action: 'cancel',
        parts: [part('rate limited'), ...nextTry(message), part('costs no attempt')],
      }
    case 'parked':
      return { ...calm, hasStory: true, action: 'cancel', parts: [part(parkedText(message)), ...nextTry(message)] }
    case 'answered':
      if (message.answers !== undefined) return { ...calm, parts: [part('answered the question')] }
      return { ...calm, parts: [part('answered'), ...usageOf(message), ...interruptedOf(message)] }
    case 'failed':
      return failedState(message)
    case 'stopped':
      if (message.wasRunAgain) return { ...calm, parts: [part(stoppedText(message)), RUN_AGAIN] }
      return { ...calm, parts: [part(stoppedText(message))], action: 'run again' }
  }
}

const RUN_AGAIN = part('was run again')

function failedState(message: PlacedMessage): MessageStateText {
  const reason = shorten(message.reason ?? 'the turn failed')
  if (message.replayed_as !== undefined || message.wasRunAgain) {
    return { parts: [part(`failed: ${reason}`), RUN_AGAIN], isRed: false, hasStory: true }
  }
  const isHandled = message.handled === true
  // A dead letter is replayed. A message that the agent refused is sent again as a new one.
  const action = message.handled === undefined ? 'run again' : 'replay'
  return {
    parts: [part(`failed: ${reason}`), ...(isHandled ? [part('discarded')] : [])],
    isRed: !isHandled,
    hasStory: true,
    ...(!isHandled && { action }),
  }
}

function placeOf({ place = 0, workspace_is: stopped }: ChatMessageView): StatePart[] {
  const stands = part(place === 0 ? 'next' : `behind ${countText(place)}`)
  return stopped === undefined ? [stands] : [stands, part(`the workspace is ${stopped}`)]
}

const runningSince = ({ started_at: since }: ChatMessageView): StatePart[] =>
  since === undefined ? [] : [{ text: '', since }]

const nextTry = ({ next_try_at: at }: ChatMessageView): StatePart[] =>
  at === undefined ? [] : [part(`next try ${clockTime(new Date(at))}`)]

const parkedText = ({ reason }: ChatMessageView): string =>
  reason === undefined ? 'parked' : `parked: ${shorten(reason)}`

/** A message that was taken out of the queue: no turn of it ran, or it waited for its next attempt. */
function stoppedText({ duration_ms: tookMs, started_at: startedAt }: ChatMessageView): string {
  if (startedAt === undefined) return 'cancelled while it waited'
  return tookMs === undefined ? 'stopped' : `stopped after ${tookTime(tookMs)}`
}

/** Time, cost and tokens; how many went in and out is in the title of the line. */
function usageOf({ usage, duration_ms: tookMs }: ChatMessageView): StatePart[] {
  const took = tookMs === undefined ? [] : [part(tookTime(tookMs))]
  if (usage === undefined) return took
  const { cost_usd: usd, input_tokens: input, output_tokens: output } = usage
  const cost =
    usd === null ? { text: 'cost unknown', isUnknown: true } : part(costText(usd, usage.unknown_cost_turns > 0))
  const tokens = input === null || output === null ? [] : [part(`${countText(input + output)} tokens`)]
  return [...took, cost, ...tokens]
}

function interruptedOf({ interruptions = 0 }: ChatMessageView): StatePart[] {
  if (interruptions === 0) return []
  return [part(`interrupted ${interruptions === 1 ? 'once' : `${interruptions} times`}, run again`)]
}

/** `1,204 tokens in, 310 out`; undefined where no turn reported any. */
export function tokensText({ usage }: Pick<ChatMessageView, 'usage'>): string | undefined {
  if (usage === undefined) return undefined
  const { input_tokens: input, output_tokens: output } = usage
  if (input === null && output === null) return 'tokens unknown'
  const count = (value: number | null) => (value === null ? 'unknown' : countText(value))
  return `${count(input)} tokens in, ${count(output)} out`
}

const REASON_CHARACTERS_MAX = 140

/** The first line without codes for owners and without its full stop, because more follows behind it. */
function shorten(reason: string): string {
  const line = plainReason(reason.trim().split('\n')[0] ?? '').replace(/[.:]$/, '')
  return truncate(line, REASON_CHARACTERS_MAX)
}
