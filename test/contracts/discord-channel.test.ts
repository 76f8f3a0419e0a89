/** The channel contract on Discord: the platform and discord.js against the fake Discord. */
import { startDiscord } from '../fakes/discord/discord.ts'
import { channelContract } from './channel-contract.ts'

channelContract({
  kind: 'discord',
  start: startDiscord,
  textCharactersMax: 2000,
  dropsCopies: true,
  namesForwarded: false,
})
