/** Reads what the bot missed: the messages of a channel or thread, and the channels and new threads that it sees. */
import type { HistoryQuery, Place, SoughtPost } from '../chat/channel.ts'
import type { SlackApi } from './slack-api.ts'
import { isGone } from './slack-errors.ts'
import {
  isCopy,
  isOwn,
  placeId,
  readPlaceId,
  type SlackMessage,
  type SlackSelf,
  threadOf,
  timeOfTs,
  tsOfTime,
} from './slack-messages.ts'

const PAGE_MESSAGES = 200
/** Pages of one call: between the messages of people there may be many of the bot itself. */
const PAGES_MAX = 20
/** Of one page of the bot's channels, and of channels whose threads are looked for. */
const CHANNELS_MAX = 200
const THREAD_CHANNELS_MAX = 40
/** Older messages of a thread are not answered. */
const THREAD_MS_MAX = 2 * 3600_000
/** The clocks of the service and of this machine differ. */
const SKEW_MS = 60_000

/** The messages after a time stamp, the oldest first. Slack gives a channel the newest first, and a thread the oldest first. */
async function readAfter(
  place: string,
  oldest: string,
  { api, signal }: { readonly api: SlackApi; readonly signal: AbortSignal },
): Promise<SlackMessage[]> {
  const { channel, thread_ts } = readPlaceId(place)
  const found: SlackMessage[] = []
  const base = { channel, oldest, inclusive: false, limit: PAGE_MESSAGES, include_all_metadata: true }
  let cursor: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const answer =
      thread_ts === undefined
        ? await api.call('conversations.history', { ...base, cursor }, signal)
        : await api.call('conversations.replies', { ...base, ts: thread_ts, cursor }, signal)
    found.push(...(answer['messages'] as SlackMessage[]))
    cursor = answer['response_metadata']?.next_cursor || undefined
    if (cursor === undefined) break
  }
  return found
    .filter((message) => threadOf(message) === thread_ts && message.ts > oldest)
    .sort((one, other) => (one.ts < other.ts ? -1 : 1))
}

/** Empty where the bot no longer sees the channel, or may not read it. */
export async function readHistory(
  query: HistoryQuery,
  api: SlackApi,
  signal: AbortSignal,
): Promise<readonly SlackMessage[]> {
  const oldest = 'sinceMs' in query ? tsOfTime(query.sinceMs) : query.afterMessageId
  try {
    return await readAfter(query.place.id, oldest, { api, signal })
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

export async function findSent(
  post: SoughtPost,
  { api, me }: { readonly api: SlackApi; readonly me: SlackSelf },
  signal: AbortSignal,
): Promise<string | undefined> {
  // A message with files may be known by its file alone.
  const isTs = /^\d{1,12}\.\d{1,6}$/.test(post.afterMessageId ?? '')
  const oldest = isTs && post.afterMessageId !== undefined ? post.afterMessageId : tsOfTime(post.sinceMs - SKEW_MS)
  const messages = await readAfter(post.place, oldest, { api, signal })
  return messages.find((message) => isOwn(message, me) && isCopy(message, post))?.ts
}

/** Channels of the bot, and threads in them that were written in lately: a thread has no event of its own beginning. */
export async function readPlaces(api: SlackApi, nowMs: number, signal: AbortSignal): Promise<readonly Place[]> {
  const query = { types: 'public_channel,private_channel', exclude_archived: true, limit: CHANNELS_MAX }
  const { channels } = await api.call('users.conversations', query, signal)
  const places = (channels as { id: string; name?: string }[]).map(
    ({ id, name = id }): Place => ({ id, isDirect: false, name: `#${name}` }),
  )
  const threads: Place[] = []
  for (const { id, name } of places.slice(0, THREAD_CHANNELS_MAX)) {
    const page = { channel: id, limit: PAGE_MESSAGES }
    const answer = await api.call('conversations.history', page, signal).catch((error: unknown) => {
      if (isGone(error)) return { messages: [] }
      throw error
    })
    for (const { ts, latest_reply } of answer['messages'] as SlackMessage[])
      if (latest_reply !== undefined && timeOfTs(latest_reply) > nowMs - THREAD_MS_MAX)
        threads.push({ id: placeId(id, ts), parentId: id, isDirect: false, name })
  }
  return [...places, ...threads]
}
