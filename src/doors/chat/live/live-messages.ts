/**
 * The live messages of a channel, by place, in the order of the messages that they belong to. Invariant: the answers of a
 * place stand in the order of their messages, so a live message that has an earlier one's message below it becomes no answer.
 */
import type { SessionContext } from '../chat-context.ts'
import type { LiveChatMessage, LiveChatMessages } from '../live-seam.ts'
import { createLiveMessage } from './live-message.ts'

export function createLiveMessages(context: Omit<SessionContext, 'live' | 'say' | 'moved'>): LiveChatMessages {
  const { chatLog, deliveries, door, stored } = context
  const places = new Map<string, LiveChatMessage[]>()
  const ofTask = (place: string, taskId: string) =>
    (places.get(place) ?? []).filter(({ message }) => message.taskId === taskId)
  /** Those after the last one that `isOwn`; all of them where there is none. */
  const passAfter = (place: string, isOwn: (live: LiveChatMessage) => boolean) => {
    const lives = places.get(place) ?? []
    for (const live of lives.slice(lives.findLastIndex(isOwn) + 1)) live.pass()
  }
  const drop: LiveChatMessages['drop'] = ({ place, id }) => {
    const left = (places.get(place) ?? []).filter((live) => live.message.id !== id)
    if (left.length > 0) places.set(place, left)
    else places.delete(place)
  }
  const of: LiveChatMessages['of'] = (message) => {
    const lives = places.get(message.place) ?? []
    const known = lives.find((one) => one.message.id === message.id)
    if (known !== undefined) return known
    const live: LiveChatMessage = createLiveMessage(
      {
        message,
        mayBecomeAnswer: stored.settings.stream !== false,
        posted: () => passAfter(message.place, (one) => one === live),
      },
      context,
    )
    places.set(message.place, [...lives, live])
    return live
  }
  return {
    of,
    drop,
    async load() {
      const open = new Set((await chatLog.open(stored.name)).map(({ place, id }) => `${place} ${id}`))
      for (const message of await chatLog.withProgress(stored.name)) {
        const { place, id, taskId = '' } = message
        if (open.has(`${place} ${id}`) || (await deliveries.hasOpen(door, place, taskId))) of(message)
        // An earlier version kept the id of a message that had ended.
        else await chatLog.setProgress(message, undefined)
      }
    },
    async take(place, taskId) {
      const ids = await Promise.all(ofTask(place, taskId).map((live) => live.take()))
      return ids.findLast((id) => id !== undefined)
    },
    async release(place, taskId) {
      await ofTask(place, taskId)
        .findLast(({ isShown, isPassed }) => isShown && !isPassed)
        ?.release()
    },
    posted: (place, taskId) => passAfter(place, ({ message }) => message.taskId === taskId),
    async end(place, taskId) {
      for (const live of ofTask(place, taskId)) {
        await live.close()
        drop(live.message)
      }
    },
  }
}
