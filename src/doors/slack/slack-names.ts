/** Names of people and channels: events have only ids. Each is asked once and remembered; without an answer the id is the name. */
import type { Author, Place } from '../chat/channel.ts'
import type { SlackApi } from './slack-api.ts'
import { slackErrorName } from './slack-errors.ts'
import { isDirectChannel, placeId } from './slack-messages.ts'

const NAMES_MAX = 2000

interface Known {
  readonly name: string
  readonly isBot?: boolean
  /** Of a direct chat. */
  readonly user?: string
}

export interface SlackNames {
  author(writer: { readonly user?: string; readonly bot_id?: string; readonly username?: string }): Promise<Author>
  /** The channel, or the thread in it. */
  place(channel: string, threadTs: string | undefined): Promise<Place>
}

export function createNames(api: SlackApi): SlackNames {
  const known = new Map<string, Known>()
  const find = async (id: string, ask: () => Promise<Known>): Promise<Known> => {
    const found = known.get(id)
    if (found !== undefined) return found
    const asked = await ask().catch((error: unknown) => {
      // A refusal stays one; after a missing answer the next message asks again.
      return slackErrorName(error) === undefined ? undefined : { name: id }
    })
    if (asked === undefined) return { name: id }
    if (known.size >= NAMES_MAX) known.delete(known.keys().next().value ?? '')
    known.set(id, asked)
    return asked
  }
  const findUser = (id: string) =>
    find(id, async () => {
      const { user } = await api.call('users.info', { user: id })
      const { display_name: shown, real_name: full } = user.profile ?? {}
      return { name: String(shown || full || user.name || id), isBot: user.is_bot === true }
    })
  return {
    async author({ user, bot_id, username }) {
      if (user === undefined) return { id: bot_id ?? 'unknown', name: username ?? bot_id ?? 'a bot', isBot: true }
      const { name, isBot = false } = await findUser(user)
      return { id: user, name, isBot: isBot || bot_id !== undefined }
    },
    async place(channel, threadTs) {
      const asked = await find(channel, async () => {
        const { channel: found } = await api.call('conversations.info', { channel })
        return { name: `#${found.name ?? channel}`, user: found.user }
      })
      const isDirect = isDirectChannel(channel)
      const name = isDirect && asked.user !== undefined ? (await findUser(asked.user)).name : asked.name
      if (threadTs === undefined) return { id: channel, isDirect, name }
      return { id: placeId(channel, threadTs), parentId: channel, isDirect, name }
    },
  }
}
