/** A running turn in its live message: what it has written so far, edited as often as the service and its answers allow. */
import { mayBeNoReply } from '../../../no-reply.ts'
import { judgePerson } from '../access.ts'
import type { Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { LiveChatMessage } from '../live-seam.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import { type ShownTurn, workingText } from './live-text.ts'
import { createTurnText, type TurnText } from './turn-text.ts'
import type { FollowedTask } from './waits.ts'

export interface LiveTurn {
  readonly text: TurnText
  now(showsCommands?: boolean): ShownTurn
  /** `isNew`: its time begins anew. */
  start(turn: { readonly isNew: boolean }): void
  stop(): void
  /** The live message ends with this text; what comes later is shown in another one. */
  leave(markdown: string): void
}

/** Of a live message that is no longer the last one. */
export const PASSED = 'Goes on below.'

/** A turn that ends before shows no live message. */
const SHOWN_AFTER_MS = 4000
/** The shortest time between two edits, whatever the channel allows. */
const EDIT_EVERY_MS = 1500
/** While only the time passes. */
const TIME_EVERY_MS = 5000
/** Of the time that has passed: a long turn is edited less often. */
const TIME_SHARE = 12
/** A group has a smaller limit than a direct chat, and more people write in it. */
const GROUP_FACTOR = 2

export function createLiveTurn(
  { message, taskId }: FollowedTask,
  live: LiveChatMessage,
  context: SessionContext,
): LiveTurn {
  const { channel, clock, stored } = context
  const text = createTurnText(taskId, 2 * channel.limits.textCharactersMax)
  const audience = readAudience(message, context)
  let startMs = clock.monotonicMs()
  let isRunning = false
  let lastShown = { atMs: 0, what: '' }
  let cancel = (): void => undefined
  const elapsedMs = () => clock.monotonicMs() - startMs
  const now: LiveTurn['now'] = (showsCommands = false) => {
    const { tools, toolCount } = text
    const isHidden = stored.settings.stream === false || mayBeNoReply(text.text)
    const written = isHidden ? { text: '', characters: 0 } : text
    const { text: beginning, characters } = written
    return { elapsedMs: elapsedMs(), text: beginning, characters, tools, toolCount, showsCommands }
  }
  const show = async (showsCommands: boolean) => {
    const shown = now(showsCommands)
    const what = `${shown.characters} ${shown.toolCount}`
    const sinceMs = clock.monotonicMs() - lastShown.atMs
    if (what === lastShown.what && sinceMs < Math.max(TIME_EVERY_MS, elapsedMs() / TIME_SHARE)) return
    if (live.isPassed) await live.close(PASSED)
    if (await live.show(workingText(shown, channel.limits.textCharactersMax)))
      lastShown = { atMs: clock.monotonicMs(), what }
  }
  const showAgain = async () => {
    const { isDirect, showsCommands } = await audience
    await show(showsCommands).catch(() => undefined)
    const everyMs = Math.max(EDIT_EVERY_MS, channel.limits.editMs) * (isDirect ? 1 : GROUP_FACTOR)
    if (isRunning) schedule(Math.max(everyMs, elapsedMs() / TIME_SHARE) * live.slowness)
  }
  const schedule = (delayMs: number) => {
    cancel()
    cancel = clock.after(delayMs, () => void showAgain())
  }
  return {
    text,
    now,
    start({ isNew }) {
      if (isNew) startMs = clock.monotonicMs()
      isRunning = true
      lastShown = { atMs: 0, what: '' }
      schedule(live.isShown ? 0 : SHOWN_AFTER_MS)
    },
    stop() {
      isRunning = false
      cancel()
    },
    leave(markdown) {
      if (!live.isShown) return
      void live.close(markdown).catch(() => undefined)
      text.cut()
    },
  }
}

/** Who reads the live message: what exactly a tool does is for an owner in a direct chat. */
async function readAudience(
  { channel, place, person }: HandledMessage,
  context: SessionContext,
): Promise<{ readonly isDirect: boolean; readonly showsCommands: boolean }> {
  try {
    const known = await context.chatLog.find({ channel, place })
    const isDirect = known !== undefined && (JSON.parse(known.description) as Place).isDirect
    return { isDirect, showsCommands: isDirect && (await judgePerson(context, { id: person })) === 'owner' }
  } catch {
    return { isDirect: false, showsCommands: false }
  }
}
