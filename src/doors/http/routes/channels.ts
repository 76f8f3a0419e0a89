/** Chat channels over HTTP: the bots, the chats that are bound to workspaces, and the people who want to talk to them. */
import type { z } from 'zod'
import {
  approvePairing,
  bindPlace,
  type channelSchema,
  createChannel,
  deleteChannel,
  denyPairing,
  listChannels,
  listPairings,
  PLACE_CHARACTERS_MAX,
  type pairingSchema,
  unbindPlace,
} from '../../../api/channels.ts'
import type { Frozen } from '../../../api/endpoint.ts'
import { requireAccess, rolesOf } from '../../../api/who-may.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { deliveryDoor, promptDoor } from '../../chat/chat-context.ts'
import type { Binding, StoredChannel } from '../../chat/store/channels.ts'
import type { Pairing } from '../../chat/store/pairings.ts'
import { publicReason } from '../../public-reason.ts'
import { seesConfig } from '../server/reach.ts'
import { serve } from './route.ts'

/** Of a check of the token. */
const CHECK_MS_MAX = 30_000

export const channelRoutes = [
  serve(createChannel, async ({ body }, { chat }) => {
    const { kind, name = kind, token, workspace_id, api_url, replace, ...lists } = body
    chat.hide(token)
    const signal = AbortSignal.timeout(CHECK_MS_MAX)
    const { account, steps } = await chat.check(
      kind,
      { token, ...(api_url !== undefined && { apiUrl: api_url }) },
      signal,
    )
    const channel = {
      name,
      kind,
      token,
      account,
      ...(workspace_id !== undefined && { workspaceId: workspace_id }),
      settings: {
        ...(api_url !== undefined && { apiUrl: api_url }),
        ...(lists.allowed_people && { allowedPeople: lists.allowed_people }),
        ...(lists.allowed_places && { allowedPlaces: lists.allowed_places }),
        ...(lists.allowed_bots && { allowedBots: lists.allowed_bots }),
      },
    }
    await chat.channels.add(channel, { replace })
    chat.wake()
    return { ...viewChannel(await chat.channels.get(name), await chat.channels.bindings()), steps }
  }),
  serve(listChannels, async ({ identity }, { chat: { channels } }) => {
    const [all, bindings] = [await channels.list(), await channels.bindings()]
    const view = seesConfig(identity) ? viewChannel : viewChannelWithoutConfig
    return { channels: all.map((channel) => view(channel, bindings)) }
  }),
  serve(deleteChannel, async ({ params: { channel } }, { chat }) => {
    await chat.channels.remove(channel)
    chat.wake()
    for (const door of [deliveryDoor, promptDoor]) await chat.endDeliveries(door(channel))
  }),
  serve(bindPlace, async ({ params: { channel, place }, body: { workspace_id: workspaceId } }, { chat }) => {
    if (place.length > PLACE_CHARACTERS_MAX) throw new MoleculeError('invalid_request', 'the place is too long')
    await chat.channels.bind({ channel, place, workspaceId })
    return { channel, place, workspace_id: workspaceId }
  }),
  serve(unbindPlace, async ({ params: { channel, place } }, { chat }) => {
    await chat.channels.unbind(channel, place)
  }),
  serve(listPairings, async (_call, { chat: { pairings } }) => ({
    pairings: (await pairings.list()).map(viewPairing),
  })),
  serve(approvePairing, async ({ params, identity, body: { role } }, { chat }) => {
    if (role === 'owner') requireAccess(identity, 'pairing.owner')
    const decision = { state: 'approved', role, ...decisionOf(identity) } as const
    const pairing = await chat.pairings.decide(params.pairing, decision)
    chat.wake()
    return viewPairing(pairing)
  }),
  serve(denyPairing, async ({ params, identity }, { chat: { pairings } }) => {
    const decision = { state: 'denied', role: 'user', ...decisionOf(identity) } as const
    return viewPairing(await pairings.decide(params.pairing, decision))
  }),
]

type ChannelView = Frozen<z.output<typeof channelSchema>>

const decisionOf = ({ name, role }: Identity) => ({
  by: name,
  mayChangeOwners: rolesOf('pairing.owner').includes(role),
})

const viewChannel = (channel: StoredChannel, bindings: readonly Binding[]): ChannelView => ({
  name: channel.name,
  kind: channel.kind,
  account: channel.account?.name ?? null,
  workspace_id: channel.workspaceId ?? null,
  problem: channel.problem ?? null,
  allowed_people: channel.settings.allowedPeople ?? [],
  allowed_places: channel.settings.allowedPlaces ?? null,
  allowed_bots: channel.settings.allowedBots ?? [],
  bindings: bindings
    .filter((binding) => binding.channel === channel.name)
    .map(({ place, workspaceId }) => ({ place, workspace_id: workspaceId })),
})

/** For a viewer: no lists of people, and no path in the problem. */
function viewChannelWithoutConfig(channel: StoredChannel, bindings: readonly Binding[]) {
  const view = viewChannel(channel, bindings)
  const { allowed_people: _people, allowed_places: _places, allowed_bots: _bots, problem, ...shown } = view
  return { ...shown, problem: problem === null ? null : publicReason(problem) }
}

const viewPairing = ({
  channel,
  person,
  name,
  code,
  state,
  role,
  decidedBy,
  createdAtMs,
  held,
}: Pairing & { held?: number }): z.output<typeof pairingSchema> => ({
  channel,
  person,
  name,
  state,
  role,
  code: state === 'pending' ? code : null,
  decided_by: decidedBy ?? null,
  held: held ?? 0,
  created_at: new Date(createdAtMs).toISOString(),
})
