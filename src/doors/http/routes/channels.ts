/** Chat channels over HTTP: the bots, the chats that are bound to workspaces, and the people who want to talk to them. */
import {
  approvePairing,
  bindPlace,
  callWebhook,
  createChannel,
  deleteChannel,
  denyPairing,
  listChannels,
  listPairings,
  PLACE_CHARACTERS_MAX,
  readChannelKind,
  unbindPlace,
} from '../../../api/channels.ts'
import { requireAccess, rolesOf } from '../../../api/who-may.ts'
import { MoleculeError } from '../../../errors.ts'
import { readChannel, readChannels, readPairing, readPairings, readPublicChannels } from '../../../views/channels.ts'
import { seesConfig } from '../../../workspaces/may-talk.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { doorsOf } from '../../chat/chat-context.ts'
import { answerWebhook } from './channel-webhook.ts'
import { serve } from './route.ts'

/** Of a check of the token. */
const CHECK_MS_MAX = 30_000
/** Of an answer to a decision: the messages that were held are answered or removed now. */
const HELD_AFTER_DECISION = 0

export const channelRoutes = [
  serve(createChannel, async ({ body }, { chat, store }) => {
    const {
      kind,
      name = kind,
      token,
      workspace_id: workspaceId,
      api_url: apiUrl,
      settings,
      replace,
      gateway,
      stream,
      ...lists
    } = body
    const { account, steps, plain, secrets } = await chat.check(
      { kind, token, settings, apiUrl },
      AbortSignal.timeout(CHECK_MS_MAX),
    )
    const { allowed_people: allowedPeople, allowed_places: allowedPlaces, allowed_bots: allowedBots } = lists
    const shown = stream ? {} : { stream }
    const stored = { apiUrl, allowedPeople, allowedPlaces, allowedBots, ofKind: plain, gateway, ...shown }
    await chat.channels.add({ name, kind, token, secrets, account, workspaceId, settings: stored }, { replace })
    chat.wake()
    return { ...(await readChannel(store, name)), steps }
  }),
  serve(listChannels, async ({ identity }, { store }) => ({
    channels: await (seesConfig(identity) ? readChannels(store) : readPublicChannels(store)),
  })),
  serve(deleteChannel, async ({ params: { channel } }, { chat }) => {
    await chat.channels.remove(channel)
    chat.wake()
    for (const door of doorsOf(channel)) await chat.endDeliveries(door)
  }),
  serve(readChannelKind, async ({ params }, { chat }) => {
    const { kind, tokenVariable, tokenSteps, settings = [] } = await chat.requireKind(params.kind)
    return {
      kind,
      token_variable: tokenVariable,
      token_steps: tokenSteps,
      settings: settings.map(({ name, variable, summary, isSecret, isRequired }) => ({
        name,
        variable,
        summary,
        is_secret: isSecret,
        is_required: isRequired,
      })),
    }
  }),
  serve(callWebhook, answerWebhook),
  serve(bindPlace, async ({ params: { channel, place }, body: { workspace_id: workspaceId } }, { chat }) => {
    if (place.length > PLACE_CHARACTERS_MAX) throw new MoleculeError('invalid_request', 'the place is too long')
    await chat.channels.bind({ channel, place, workspaceId })
    return { channel, place, workspace_id: workspaceId }
  }),
  serve(unbindPlace, async ({ params: { channel, place } }, { chat }) => {
    await chat.channels.unbind(channel, place)
  }),
  serve(listPairings, async (_call, { store }) => await readPairings(store)),
  serve(approvePairing, async ({ params, identity, body: { role } }, { chat, store }) => {
    if (role === 'owner') requireAccess(identity, 'pairing.owner')
    const key = await chat.pairings.decide(params.pairing, { state: 'approved', role, ...decisionOf(identity) })
    chat.wake()
    return { ...(await readPairing(store, key)), held: HELD_AFTER_DECISION }
  }),
  serve(denyPairing, async ({ params, identity }, { chat, store }) => {
    const key = await chat.pairings.decide(params.pairing, { state: 'denied', role: 'user', ...decisionOf(identity) })
    chat.wake()
    return { ...(await readPairing(store, key)), held: HELD_AFTER_DECISION }
  }),
]

const decisionOf = ({ name, role }: Identity) => ({
  by: name,
  mayChangeOwners: rolesOf('pairing.owner').includes(role),
})
