/**
 * The kinds of chat channels: those of Molecule, and those of adapters. One of Molecule is loaded only when a channel of it is
 * used, because its library is large.
 */
import type { ChannelKind } from '../doors/chat/channel.ts'
import { MoleculeError } from '../errors.ts'

export const CHANNEL_KINDS: Readonly<Record<string, () => Promise<ChannelKind>>> = {
  discord: async () => (await import('../doors/discord/discord.ts')).discordKind,
  matrix: async () => (await import('../doors/matrix/matrix.ts')).matrixKind,
  slack: async () => (await import('../doors/slack/slack.ts')).slackKind,
  socket: async () => (await import('../doors/socket/socket.ts')).socketKind,
  telegram: async () => (await import('../doors/telegram/telegram.ts')).telegramKind,
}

export const findBuiltinKind = async (name: string): Promise<ChannelKind | undefined> =>
  Object.hasOwn(CHANNEL_KINDS, name) ? await CHANNEL_KINDS[name]?.() : undefined

export interface ChannelKinds {
  names(): readonly string[]
  find(name: string): Promise<ChannelKind | undefined>
  /** Throws `invalid_request`: with the known names, or with the reason for an adapter that could not be loaded. */
  require(name: string): Promise<ChannelKind>
}

/** `broken`: adapters that could not be loaded, by the name of their folder, with the reason. */
export function createChannelKinds(
  ofAdapters: readonly ChannelKind[],
  broken: ReadonlyMap<string, string>,
): ChannelKinds {
  const names = [...Object.keys(CHANNEL_KINDS), ...ofAdapters.map(({ kind }) => kind)].sort()
  const find = async (name: string) => (await findBuiltinKind(name)) ?? ofAdapters.find(({ kind }) => kind === name)
  return {
    names: () => names,
    find,
    async require(name) {
      const kind = await find(name)
      if (kind !== undefined) return kind
      const reason = broken.get(name)
      const text =
        reason === undefined
          ? `there is no kind of channel ${JSON.stringify(name.slice(0, 100))}; the kinds are ${names.join(', ')}`
          : `the adapter "${name}" could not be loaded: ${reason}`
      throw new MoleculeError('invalid_request', text)
    },
  }
}
