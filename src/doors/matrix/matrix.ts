/**
 * The kind `matrix`: rooms without encryption, by the client-server API. A check asks the homeserver whose token it is; a log-in
 * makes the token.
 */
import type { ChannelKind } from '../chat/channel.ts'
import { requireApiUrl } from './matrix-api.ts'
import { createMatrixChannel, openApi, whoAmI } from './matrix-channel.ts'
import { logInToMatrix, requireHomeserver } from './matrix-login.ts'

export const matrixKind: ChannelKind = {
  kind: 'matrix',
  tokenVariable: 'MATRIX_ACCESS_TOKEN',
  tokenSteps: [
    'Make an account for the bot on your homeserver, as for a person.',
    'Molecule logs in with its name and its password, and keeps only the access token.',
  ],
  logIn: logInToMatrix,
  async check(options, signal) {
    const apiUrl = requireApiUrl(options)
    await requireHomeserver(apiUrl, signal)
    const { id, name } = await whoAmI(openApi(options), signal)
    return {
      account: { id, name },
      steps: [
        `Invite ${id} to a room, or write to it directly. It joins when a person invites it who is let in (--allow-people), or is paired.`,
        'Make the room without encryption: the bot cannot read encrypted rooms.',
      ],
    }
  },
  open: async (options) => createMatrixChannel(options),
}
