/** The channel contract on the line channel: a service that keeps messages for the bot, and one with a history. */
import { startLineService } from '../fakes/line-service.ts'
import { channelContract } from './channel-contract.ts'

channelContract({ kind: 'line', start: () => startLineService(), textCharactersMax: 2000, dropsCopies: false })
channelContract({
  ...{ kind: 'line', name: 'line (with history and nonces)', textCharactersMax: 2000, dropsCopies: true },
  findsThreads: false,
  start: () => startLineService({ usesHistory: true, nonceMs: 60_000 }),
})
