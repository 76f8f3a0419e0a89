/** Chat channels: the bots, the chats that are bound to workspaces, and the people who want to talk to them. */
import { z } from 'zod'
import { contentOf, endpoint, nothing } from './endpoint.ts'
import { shortTextSchema, URL_CHARACTERS_MAX } from './fields.ts'

const TOKEN_CHARACTERS_MAX = 500
/** Of the id of a chat or of a person on the service. */
export const PLACE_CHARACTERS_MAX = 100
const LISTED_IDS_MAX = 500
/** Settings of one channel. */
const SETTINGS_MAX = 20
/** A certificate or a key fits. */
const SETTING_CHARACTERS_MAX = 10_000

const ids = z.array(z.string().trim().min(1).max(PLACE_CHARACTERS_MAX)).max(LISTED_IDS_MAX).optional()

const settingSchema = z.string().trim().min(1).max(SETTING_CHARACTERS_MAX)

/** Absent for a channel that `molecule channel add` has made. */
const gatewaySchema = z.strictObject({
  owners: ids.unwrap().describe('The people whom the environment named as owners.'),
})

const newChannelSchema = z.strictObject({
  kind: z.string().min(1).max(40).meta({ names: 'channelKinds' }),
  /** Becomes part of principals and reply addresses. */
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be 1 to 40 small letters, digits and dashes')
    .optional(),
  token: z.string().trim().min(1).max(TOKEN_CHARACTERS_MAX),
  workspace_id: shortTextSchema.optional(),
  api_url: z.url().max(URL_CHARACTERS_MAX).optional(),
  settings: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, 'must be 1 to 40 small letters, digits and _'), settingSchema)
    .refine((settings) => Object.keys(settings).length <= SETTINGS_MAX, `must have at most ${SETTINGS_MAX} members`)
    .default({})
    .describe('What the kind needs besides the token; its secrets are never shown again.'),
  allowed_people: ids,
  allowed_places: ids,
  allowed_bots: ids,
  gateway: gatewaySchema.optional().describe('`molecule gateway` keeps the channel equal to its environment.'),
  stream: z.boolean().default(true).describe('Show an answer while it is written; false: when it is complete.'),
  replace: z.boolean().default(false),
})

/** A channel without its token. */
const channelSchema = z.strictObject({
  name: z.string(),
  kind: z.string(),
  account: z.string().nullable().describe('The name of the bot on the service.'),
  workspace_id: z.string().nullable().describe('Answers in direct chats, and where the bot is mentioned.'),
  problem: z.string().nullable().describe('Why it does not work at the moment.'),
  allowed_people: z.array(z.string()),
  allowed_places: z.array(z.string()).nullable().describe('Null: all places are answered.'),
  allowed_bots: z.array(z.string()),
  settings: z.record(z.string(), z.string()).describe('Settings of its kind that are no secrets.'),
  gateway: gatewaySchema.nullable().describe('Null: `molecule gateway` did not make it.'),
  stream: z.boolean().describe('An answer is shown while it is written.'),
  bindings: z.array(z.strictObject({ place: z.string(), workspace_id: z.string() })),
})

const pairingSchema = z.strictObject({
  channel: z.string(),
  person: z.string().describe('The id of the person on the service.'),
  name: z.string(),
  state: z.enum(['pending', 'approved', 'denied']),
  role: z.enum(['user', 'owner']),
  code: z.string().nullable().describe('Null unless the pairing is pending.'),
  decided_by: z.string().nullable(),
  held: z.number().describe('Messages that wait for the decision.'),
  created_at: z.string(),
})

export const createChannel = endpoint('POST /channels', {
  access: 'channel.handle',
  body: { schema: newChannelSchema, name: 'a channel' },
  summary:
    'Connect a bot of a chat service; its token is checked first and never shown again; "replace" changes a known channel',
  success: [201, 'The channel, and what is still to be clicked at the service'],
  answer: channelSchema.extend({ steps: z.array(z.string()) }),
})

export const listChannels = endpoint('GET /channels', {
  access: 'channel.read',
  summary: 'The chat channels with their bindings, without their tokens',
  success: [200, 'The channels'],
  answer: z.strictObject({
    channels: z
      .array(
        channelSchema.partial({
          allowed_people: true,
          allowed_places: true,
          allowed_bots: true,
          settings: true,
          gateway: true,
          stream: true,
        }),
      )
      .describe('A viewer sees neither who is allowed nor the settings.'),
  }),
})

export const deleteChannel = endpoint('DELETE /channels/{channel}', {
  access: 'channel.handle',
  summary: 'Remove a channel with its token, bindings and pairings; its tasks stay',
  success: [204, 'It is removed'],
  answer: nothing,
})

export const readChannelKind = endpoint('GET /channel-kinds/{kind}', {
  access: 'channel.handle',
  summary: 'What a kind of channel needs: how a person gets a token, and its further settings',
  success: [200, 'The kind'],
  answer: z.strictObject({
    kind: z.string(),
    token_variable: z.string(),
    token_steps: z.array(z.string()),
    settings: z.array(
      z.strictObject({
        name: z.string(),
        variable: z.string(),
        summary: z.string(),
        is_secret: z.boolean(),
        is_required: z.boolean(),
      }),
    ),
  }),
})

export const callWebhook = endpoint('POST /channels/{channel}/webhook', {
  access: 'open',
  upload: true,
  summary:
    'Where a chat service calls a channel that takes webhooks; the channel verifies the signature of the raw body',
  success: [200, 'What the channel answers'],
  answer: contentOf('text/plain'),
})

export const bindPlace = endpoint('PUT /channels/{channel}/bindings/{place}', {
  access: 'channel.bind',
  body: {
    schema: z.strictObject({ workspace_id: z.string().min(1).max(PLACE_CHARACTERS_MAX) }),
    name: 'a binding',
  },
  summary: 'Let a workspace answer every message of a chat, channel or thread',
  success: [200, 'The binding'],
  answer: z.strictObject({ channel: z.string(), place: z.string(), workspace_id: z.string() }),
})

export const unbindPlace = endpoint('DELETE /channels/{channel}/bindings/{place}', {
  access: 'channel.bind',
  summary: 'Unbind a chat: its messages go to the default workspace, and in groups only when the bot is mentioned',
  success: [204, 'It is unbound'],
  answer: nothing,
})

export const listPairings = endpoint('GET /pairings', {
  access: 'pairing.read',
  summary: 'The people who wrote to a bot, and how many of their messages are held',
  success: [200, 'The pairings, the oldest first'],
  answer: z.strictObject({ pairings: z.array(pairingSchema) }),
})

export const approvePairing = endpoint('POST /pairings/{pairing}/approve', {
  access: 'pairing.handle',
  body: {
    schema: z.strictObject({ role: z.enum(['user', 'owner']).default('user') }),
    name: 'an approval',
    optional: true,
  },
  summary:
    'Let a person talk to a bot, by code or by "<channel>/<person>"; the held messages are answered now; only an admin makes or changes an owner',
  success: [200, 'The pairing'],
  answer: pairingSchema,
})

export const denyPairing = endpoint('POST /pairings/{pairing}/deny', {
  access: 'pairing.handle',
  summary: 'Ignore a person from now on, and drop the held messages',
  success: [200, 'The pairing'],
  answer: pairingSchema,
})

export const channelEndpoints = [
  createChannel,
  listChannels,
  deleteChannel,
  readChannelKind,
  callWebhook,
  bindPlace,
  unbindPlace,
  listPairings,
  approvePairing,
  denyPairing,
] as const
