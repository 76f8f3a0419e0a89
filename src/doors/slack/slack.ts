/**
 * The Slack channel: Socket Mode for what people write, the Web API for what the bot writes. Both libraries are loaded only
 * when a channel of this kind is used.
 */
import { onAbort, sleep } from '../../wait.ts'
import type { Channel, ChannelKind, ChannelLimits, ChannelOptions, SendResult } from '../chat/channel.ts'
import { downloadFile } from '../chat/service-calls.ts'
import {
  appTokenOf,
  clientOptions,
  createSlackApi,
  requireSlackHost,
  type SlackApi,
  silentLogger,
} from './slack-api.ts'
import { connectError, slackOutcome } from './slack-errors.ts'
import { createReceiver } from './slack-events.ts'
import { sendWithFiles } from './slack-files.ts'
import { findSent, readHistory, readPlaces } from './slack-history.ts'
import {
  isOwn,
  isWritten,
  messageBody,
  readPlaceId,
  type SlackMessage,
  type SlackSelf,
  threadOf,
  toIncomingMessage,
} from './slack-messages.ts'
import { renderSlack, SLACK_TEXT_CHARS_MAX } from './slack-mrkdwn.ts'
import { createNames } from './slack-names.ts'
import { createReactions } from './slack-reactions.ts'
import { keepConnected, type SlackConnection } from './slack-socket.ts'

const LIMITS: ChannelLimits = {
  textCharactersMax: SLACK_TEXT_CHARS_MAX,
  uploadBytesMax: 50 * 1024 * 1024,
  downloadBytesMax: 25 * 1024 * 1024,
  // Fifty edits a minute, in all channels together.
  editMs: 3000,
  typingMs: 60_000,
  nonceMs: 0,
}

/** A connection that is cut before its end leaves a timer of the library, which keeps the process alive for 30 s. */
const CLOSE_MS_MAX = 1500

/** Without one of these the bot cannot answer at all; the manifest in `docs/doors/slack.md` has them and more. */
const SCOPES_NEEDED = ['chat:write', 'im:history', 'channels:history', 'users:read'] as const

export const slackKind: ChannelKind = {
  kind: 'slack',
  tokenVariable: 'SLACK_BOT_TOKEN',
  tokenSteps: [
    'Open https://api.slack.com/apps, click Create New App, From a manifest, and paste the manifest of docs/doors/slack.md.',
    'Click Install to Workspace. Under OAuth & Permissions copy the Bot User OAuth Token (xoxb-...).',
    'Under Basic Information, App-Level Tokens, generate a token with the scope connections:write (xapp-...).',
  ],
  settings: [
    {
      name: 'app_token',
      variable: 'SLACK_APP_TOKEN',
      summary:
        'The app-level token (xapp-...) of Basic Information, App-Level Tokens, with the scope connections:write.',
      isSecret: true,
      isRequired: true,
    },
  ],
  async check(options, signal) {
    const api = await createSlackApi(options)
    try {
      const { account, scopes } = await readAccount(api, signal)
      const missing = SCOPES_NEEDED.filter((scope) => scopes !== undefined && !scopes.includes(scope))
      if (missing.length > 0)
        throw connectError({ data: { error: 'missing_scope', needed: missing.join(', ') } }, 'bot')
      await checkAppToken(options, signal)
      return {
        account: { id: account.userId, name: account.name },
        steps: [`Invite the bot to a channel: write /invite @${account.name} there.`],
      }
    } finally {
      api.close()
    }
  },
  open: async (options) => createSlackChannel(options, await createSlackApi(options)),
}

type SlackAccount = SlackSelf & { readonly name: string }

async function readAccount(api: SlackApi, signal: AbortSignal) {
  try {
    const answer = await api.call('auth.test', {}, signal)
    const scopes = answer['response_metadata']?.scopes as readonly string[] | undefined
    const account: SlackAccount = { userId: answer['user_id'], botId: answer['bot_id'], name: answer['user'] }
    return { account, scopes }
  } catch (error) {
    throw connectError(error, 'bot')
  }
}

/** Asks for the address of a connection, and makes none: a connection that only checks would take messages of the bot. */
async function checkAppToken(options: ChannelOptions, signal: AbortSignal): Promise<void> {
  const { WebClient } = await import('@slack/web-api')
  const client = new WebClient(appTokenOf(options), { ...clientOptions(options, signal), logger: silentLogger })
  try {
    await client.apiCall('apps.connections.open')
  } catch (error) {
    throw connectError(error, 'app')
  }
}

function createSlackChannel(options: ChannelOptions, api: SlackApi): Channel {
  const closing = new AbortController()
  const names = createNames(api)
  const reactions = createReactions(api)
  let connection: SlackConnection | undefined
  let self: Promise<SlackAccount> | undefined
  /** Also the history needs it, which is read before the connection. */
  const findSelf = (signal: AbortSignal): Promise<SlackAccount> => {
    self ??= readAccount(api, signal).then(({ account }) => account)
    self.catch(() => {
      self = undefined
    })
    return self
  }
  const readAs = async (message: SlackMessage, channel: string, me: SlackSelf) => {
    if (isOwn(message, me) || !isWritten(message)) return undefined
    const [author, place] = await Promise.all([names.author(message), names.place(channel, threadOf(message))])
    return toIncomingMessage(message, { author, place, me })
  }
  return {
    limits: LIMITS,
    render: renderSlack,
    async connect(events, _commands, signal) {
      onAbort(signal, () => closing.abort())
      const me = await findSelf(closing.signal)
      const read = (message: SlackMessage, channel: string) => readAs(message, channel, me)
      const receive = createReceiver({ options, events, names, me, read, arrived: reactions.arrived }, closing.signal)
      connection = await keepConnected({ options, events, receive }, closing.signal)
      return { id: me.userId, name: me.name }
    },
    async send(message, signal) {
      if ((message.files ?? []).length > 0) return await sendWithFiles(message, { api, options }, signal)
      return await outcomeOf(async () => (await api.call('chat.postMessage', messageBody(message), signal))['ts'])
    },
    async edit({ place, messageId, text }, signal) {
      // Without an empty list the buttons stay.
      const body = { channel: readPlaceId(place).channel, ts: messageId, text, blocks: [] }
      const outcome = await outcomeOf(async () => (await api.call('chat.update', body, signal))['ts'])
      return outcome.type === 'unknown' ? { type: 'failed', error: outcome.error } : outcome
    },
    // A bot has no sign of writing in Slack.
    typing: async () => undefined,
    react: ({ place, messageId }, state) =>
      reactions.show(readPlaceId(place).channel, messageId, state).catch(() => undefined),
    async download({ ref }, bytesMax, signal) {
      const url = requireSlackHost(ref, options)
      const headers = { authorization: `Bearer ${options.token}` }
      return await downloadFile(url.href, { bytesMax, service: 'Slack', headers }, signal)
    },
    places: (signal) => readPlaces(api, options.clock.nowMs(), signal),
    async history(query, signal) {
      const me = await findSelf(signal)
      const { channel } = readPlaceId(query.place.id)
      const messages = (await readHistory(query, api, signal)).filter(
        (message) => !isOwn(message, me) && isWritten(message),
      )
      const read = await Promise.all(messages.slice(0, query.limit).map((message) => readAs(message, channel, me)))
      return read.flatMap((message) => message ?? [])
    },
    findSent: async (post, signal) => findSent(post, { api, me: await findSelf(signal) }, signal),
    async close() {
      closing.abort()
      api.close()
      const late = new AbortController()
      await Promise.race([connection?.ended, sleep(options.clock, CLOSE_MS_MAX, late.signal)])
      late.abort()
    },
  }
}

async function outcomeOf(send: () => Promise<string>): Promise<SendResult> {
  try {
    return { type: 'sent', messageId: await send() }
  } catch (error) {
    return slackOutcome(error)
  }
}
