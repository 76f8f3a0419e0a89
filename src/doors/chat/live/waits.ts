/**
 * Why messages wait, said in their chat: by one live message for each place, which is edited while the reason changes. It
 * belongs to one message and becomes its live message when its turn begins. Invariant: a short wait shows nothing, and the
 * reason is read from the state of the messages.
 */
import { readChatPage } from '../../../views/chat-page.ts'
import { readBudgetWait } from '../../../views/needs/budget-asks.ts'
import type { SessionContext } from '../chat-context.ts'
import type { LiveChatMessage } from '../live-seam.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import { alsoWaiting, type WaitingMessage, waitText } from './wait-text.ts'

export interface Waits {
  begin(task: FollowedTask, live: LiveChatMessage): void
  /** Its turn begins, or its task has ended. */
  end(message: HandledMessage): void
}

export interface FollowedTask {
  readonly message: HandledMessage
  readonly taskId: string
  readonly workspaceId: string
}

/** A shorter wait shows nothing. So often the reason is read again. */
const WAIT_MS = 5000

interface Wait extends FollowedTask {
  readonly live: LiveChatMessage
  readonly sinceMs: number
}

interface PlaceWaits {
  /** In the order of the messages. */
  waits: Wait[]
  /** The one whose live message says why. */
  teller: Wait | undefined
  cancel: () => void
}

export function createWaits(context: SessionContext): Waits {
  const { clock, log, signal, stored } = context
  const places = new Map<string, PlaceWaits>()
  const schedule = (place: PlaceWaits) => {
    place.cancel = clock.after(WAIT_MS, () => {
      tell(place, context)
        .catch((error) => log.debug({ err: error, channel: stored.name }, 'why a message waits could not be shown'))
        .finally(() => {
          if (place.waits.length > 0 && !signal.aborted) schedule(place)
        })
    })
  }
  return {
    begin(task, live) {
      const { message } = task
      const known = places.get(message.place)
      const place: PlaceWaits = known ?? { waits: [], teller: undefined, cancel: () => undefined }
      const wait = { ...task, live, sinceMs: clock.monotonicMs() }
      place.waits = [...place.waits, wait]
      // A live message of this wait from before a restart, or of a turn that is tried again.
      if (live.isShown) place.teller ??= wait
      if (known !== undefined) return
      places.set(message.place, place)
      schedule(place)
    },
    end({ place: id, id: messageId }) {
      const place = places.get(id)
      if (place === undefined) return
      place.waits = place.waits.filter(({ message }) => message.id !== messageId)
      if (place.teller?.message.id === messageId) place.teller = undefined
      if (place.waits.length > 0) return
      place.cancel()
      places.delete(id)
    },
  }
}

async function tell(place: PlaceWaits, context: SessionContext): Promise<void> {
  const nowMs = context.clock.monotonicMs()
  const waits = place.waits.filter(({ sinceMs }) => nowMs - sinceMs >= WAIT_MS / 2)
  const [first] = waits
  const last = waits.at(-1)
  if (first === undefined || last === undefined) return
  const head = await readWait(first, context)
  if (head === undefined) return
  // Behind a turn that runs, the place of the newest message tells of all.
  const isBehind = head.state === 'queued' && head.workspace_is === undefined && (head.place ?? 0) > 0
  const message = isBehind && last !== first ? await readWait(last, context) : head
  const text = message && waitText(message)
  if (text === undefined) return
  const teller = place.teller ?? (isBehind ? last : first)
  if (!place.waits.includes(teller)) return
  place.teller = teller
  await teller.live.show(isBehind ? text : alsoWaiting(text, waits.length - 1))
}

/** Undefined when it runs, or waits for a budget: then the prompt of the budget says so. */
async function readWait(
  { taskId, workspaceId }: FollowedTask,
  { store }: SessionContext,
): Promise<WaitingMessage | undefined> {
  if ((await readBudgetWait(store, taskId)) !== undefined) return undefined
  const query = { workspaceId, conversation: taskId, at: taskId, limit: 1, detail: false }
  const [message] = (await readChatPage(store, query)).messages
  return message?.id === taskId ? message : undefined
}
