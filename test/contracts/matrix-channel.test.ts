/** The channel contract on Matrix: the platform and the fake homeserver. Ten files are ten events, after that of the text. */
import { startMatrix, userId } from '../fakes/matrix/matrix.ts'
import { channelContract } from './channel-contract.ts'

channelContract({
  kind: 'matrix',
  start: startMatrix,
  textCharactersMax: 6000,
  dropsCopies: true,
  personId: userId,
  messagesOfTenFiles: 11,
  tellsForwards: false,
})
