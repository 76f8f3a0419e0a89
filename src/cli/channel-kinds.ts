/** The kinds of chat channels. Each is loaded only when a channel of it is used, because its library is large. */
import type { ChannelKind } from '../doors/chat/channel.ts'
import { MoleculeError } from '../errors.ts'

export const CHANNEL_KINDS: Readonly<Record<string, () => Promise<ChannelKind>>> = {
  discord: async () => (await import('../doors/discord/discord.ts')).discordKind,
  socket: async () => (await import('../doors/socket/socket.ts')).socketKind,
  telegram: async () => (await import('../doors/telegram/telegram.ts')).telegramKind,
}

export const findChannelKind = async (kind: string): Promise<ChannelKind | undefined> =>
  Object.hasOwn(CHANNEL_KINDS, kind) ? await CHANNEL_KINDS[kind]?.() : undefined

export async function requireChannelKind(name: string): Promise<ChannelKind> {
  const kind = await findChannelKind(name)
  if (kind !== undefined) return kind
  const known = Object.keys(CHANNEL_KINDS).join(', ')
  throw new MoleculeError('invalid_request', `there is no kind of channel "${name}"; the kinds are ${known}`)
}
