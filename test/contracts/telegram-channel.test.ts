/** The channel contract on Telegram: the platform and grammY against the fake Telegram. */
import { startTelegram } from '../fakes/telegram/telegram.ts'
import { channelContract } from './channel-contract.ts'

channelContract({ kind: 'telegram', start: startTelegram, textCharactersMax: 4096, dropsCopies: false })
