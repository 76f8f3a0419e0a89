/** People who wait to talk to a bot, as needs of its owner. The id of such a need is the code of the pairing. */
import type { Need, NeedSource } from '../../inbox/owners.ts'
import type { Pairings, PendingPairing } from './store/pairings.ts'

export function pairingNeeds({ listPending }: Pick<Pairings, 'listPending'>): NeedSource {
  return {
    kind: 'pairing',
    async summary(workspaceId) {
      const pending = await listPending(workspaceId)
      return { count: pending.length, mark: pending.map(({ code, held }) => `${code}.${held}`).join(',') }
    },
    // Each channel has a limit of people who wait, so there are no pages.
    list: async ({ workspaceId }) => ({ rows: (await listPending(workspaceId)).map(toNeed) }),
  }
}

function toNeed({ name, channel, code, held, createdAtMs, workspaceId = '' }: PendingPairing): Need {
  const messages = held === 1 ? '1 message is' : `${held} messages are`
  return {
    kind: 'pairing',
    id: code,
    workspaceId,
    sinceMs: createdAtMs,
    to: channel,
    reason: `${name} wants to talk to the bot "${channel}"; ${messages} held`,
  }
}
