/** Chat channels over HTTP: the bots, the chats that are bound to workspaces, and the people who want to talk to them. */
import { z } from 'zod'
import { requireAccess, rolesOf } from '../../../api/who-may.ts'
import { newWorkspaceSchema } from '../../../api/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Binding, StoredChannel } from '../../../workspaces/channels.ts'
import type { Pairing } from '../../../workspaces/pairings.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { deliveryDoor } from '../../chat/chat-context.ts'
import { publicReason } from '../../public-reason.ts'
import { seesConfig } from '../server/reach.ts'
import { route } from './route.ts'

const TOKEN_CHARACTERS_MAX = 500
const URL_CHARACTERS_MAX = 2000
const PLACE_CHARACTERS_MAX = 100
const LISTED_IDS_MAX = 500
/** Of a check of the token. */
const CHECK_MS_MAX = 30_000

const ids = z.array(z.string().trim().min(1).max(PLACE_CHARACTERS_MAX)).max(LISTED_IDS_MAX).optional()
const newChannelSchema = z.strictObject({
  kind: z.string().min(1).max(40).meta({ names: 'channelKinds' }),
  /** Becomes part of principals and reply addresses. */
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be 1 to 40 small letters, digits and dashes')
    .optional(),
  token: z.string().trim().min(1).max(TOKEN_CHARACTERS_MAX),
  workspace_id: newWorkspaceSchema.shape.parent_id,
  api_url: z.url().max(URL_CHARACTERS_MAX).optional(),
  allowed_people: ids,
  allowed_places: ids,
  allowed_bots: ids,
  replace: z.boolean().default(false),
})
const bindingSchema = z.strictObject({ workspace_id: z.string().min(1).max(PLACE_CHARACTERS_MAX) })
const approvalSchema = z.strictObject({ role: z.enum(['user', 'owner']).default('user') })

export const channelRoutes = [
  route({
    method: 'post',
    path: '/channels',
    access: 'channel.handle',
    body: { schema: newChannelSchema, name: 'a channel' },
    summary:
      'Connect a bot of a chat service; its token is checked first and never shown again; "replace" changes a known channel',
    success: [201, 'The channel, and what is still to be clicked at the service'],
    async handle({ context, body }, { chat }) {
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
        ...(typeof workspace_id === 'string' && { workspaceId: workspace_id }),
        settings: {
          ...(api_url !== undefined && { apiUrl: api_url }),
          ...(lists.allowed_people && { allowedPeople: lists.allowed_people }),
          ...(lists.allowed_places && { allowedPlaces: lists.allowed_places }),
          ...(lists.allowed_bots && { allowedBots: lists.allowed_bots }),
        },
      }
      await chat.channels.add(channel, { replace })
      chat.wake()
      return context.json({ ...viewChannel(await chat.channels.get(name), await chat.channels.bindings()), steps }, 201)
    },
  }),
  route({
    method: 'get',
    path: '/channels',
    access: 'channel.read',
    summary: 'The chat channels with their bindings, without their tokens',
    success: [200, 'The channels'],
    async handle({ context, identity }, { chat: { channels } }) {
      const [all, bindings] = [await channels.list(), await channels.bindings()]
      const view = seesConfig(identity) ? viewChannel : viewChannelWithoutConfig
      return context.json({ channels: all.map((channel) => view(channel, bindings)) })
    },
  }),
  route({
    method: 'delete',
    path: '/channels/:channel',
    access: 'channel.handle',
    summary: 'Remove a channel with its token, bindings and pairings; its tasks stay',
    success: [204, 'It is removed'],
    async handle({ context }, { chat }) {
      const name = context.req.param('channel')
      await chat.channels.remove(name)
      chat.wake()
      await chat.endDeliveries(deliveryDoor(name))
      return context.body(null, 204)
    },
  }),
  route({
    method: 'put',
    path: '/channels/:channel/bindings/:place',
    access: 'channel.bind',
    body: { schema: bindingSchema, name: 'a binding' },
    summary: 'Let a workspace answer every message of a chat, channel or thread',
    success: [200, 'The binding'],
    async handle({ context, body: { workspace_id: workspaceId } }, { chat }) {
      const { channel, place } = context.req.param()
      if (place.length > PLACE_CHARACTERS_MAX) throw new MoleculeError('invalid_request', 'the place is too long')
      await chat.channels.bind({ channel, place, workspaceId })
      return context.json({ channel, place, workspace_id: workspaceId })
    },
  }),
  route({
    method: 'delete',
    path: '/channels/:channel/bindings/:place',
    access: 'channel.bind',
    summary: 'Unbind a chat: its messages go to the default workspace, and in groups only when the bot is mentioned',
    success: [204, 'It is unbound'],
    async handle({ context }, { chat }) {
      const { channel, place } = context.req.param()
      await chat.channels.unbind(channel, place)
      return context.body(null, 204)
    },
  }),
  route({
    method: 'get',
    path: '/pairings',
    access: 'pairing.read',
    summary: 'The people who wrote to a bot, and how many of their messages are held',
    success: [200, 'The pairings, the oldest first'],
    async handle({ context }, { chat: { pairings } }) {
      return context.json({ pairings: (await pairings.list()).map(viewPairing) })
    },
  }),
  route({
    method: 'post',
    path: '/pairings/:pairing/approve',
    access: 'pairing.handle',
    body: { schema: approvalSchema, name: 'an approval', optional: true },
    summary:
      'Let a person talk to a bot, by code or by "<channel>/<person>"; the held messages are answered now; only an admin makes or changes an owner',
    success: [200, 'The pairing'],
    async handle({ context, identity, body: { role } }, { chat }) {
      if (role === 'owner') requireAccess(identity, 'pairing.owner')
      const decision = { state: 'approved', role, ...decisionOf(identity) } as const
      const pairing = await chat.pairings.decide(context.req.param('pairing'), decision)
      chat.wake()
      return context.json(viewPairing(pairing))
    },
  }),
  route({
    method: 'post',
    path: '/pairings/:pairing/deny',
    access: 'pairing.handle',
    summary: 'Ignore a person from now on, and drop the held messages',
    success: [200, 'The pairing'],
    async handle({ context, identity }, { chat: { pairings } }) {
      const decision = { state: 'denied', role: 'user', ...decisionOf(identity) } as const
      return context.json(viewPairing(await pairings.decide(context.req.param('pairing'), decision)))
    },
  }),
]

const decisionOf = ({ name, role }: Identity) => ({
  by: name,
  mayChangeOwners: rolesOf('pairing.owner').includes(role),
})

const viewChannel = (channel: StoredChannel, bindings: readonly Binding[]) => ({
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
}: Pairing & { held?: number }) => ({
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
