/**
 * What comes from Discord's gateway besides messages: interactions (buttons, slash commands), and the state of the connection.
 * An interaction must be acknowledged within three seconds, so it is acknowledged first and answered later.
 */
import type { APIInteraction, APIUser, Client, REST } from 'discord.js'
import { discordRefusal } from './discord-errors.ts'
import { type DiscordEventsContext, listenToMessages } from './discord-incoming.ts'
import { renderDiscord } from './discord-markdown.ts'
import { type RawChannel, timeOfId, toAuthor, toPlace } from './discord-messages.ts'

const EPHEMERAL = 64

export function listenToGateway(client: Client, context: DiscordEventsContext, signal: AbortSignal): void {
  const { library, events, options } = context
  const { Events, GatewayDispatchEvents } = library
  listenToMessages(client, context, signal)
  client.ws.on(GatewayDispatchEvents.InteractionCreate, (interaction: APIInteraction) => {
    receiveInteraction(interaction, client.rest, context).catch((cause: { status?: number }) =>
      options.log.warn({ status: cause.status }, 'an interaction of Discord could not be handled'),
    )
  })
  let sessions = 0
  client.ws.on(GatewayDispatchEvents.Ready, () => {
    sessions += 1
    // A new session replays nothing, unlike a resumed one.
    if (sessions > 1) events.reconnected()
    events.problem(undefined)
  })
  client.ws.on(GatewayDispatchEvents.Resumed, () => events.problem(undefined))
  client.on(Events.ShardReconnecting, () => events.problem('The connection to Discord ended; the bot reconnects.'))
  client.on(Events.ShardDisconnect, ({ code }) => {
    const refused = discordRefusal(code, options.token)
    if (refused && sessions > 0) events.refused(refused)
  })
}

async function receiveInteraction(
  interaction: APIInteraction,
  rest: REST,
  { library, events }: DiscordEventsContext,
): Promise<void> {
  const { Routes, InteractionType, InteractionResponseType } = library
  const { id, token, application_id } = interaction
  const user = interaction.member?.user ?? interaction.user
  if (user === undefined || interaction.channel === undefined) return
  const place = toPlace(interaction.channel as RawChannel, user.global_name ?? user.username)
  const base = { id, place, author: toAuthor(user as APIUser) }
  const acknowledge = (type: number) =>
    rest.post(Routes.interactionCallback(id, token), { auth: false, body: { type, data: { flags: EPHEMERAL } } })
  const followUp = (content: string) =>
    rest.post(Routes.webhook(application_id, token), { auth: false, body: { content, flags: EPHEMERAL } })
  if (interaction.type === InteractionType.MessageComponent) {
    await acknowledge(InteractionResponseType.DeferredMessageUpdate)
    const answer = async (text: string) => void (await followUp(text.slice(0, 2000)))
    const { custom_id: buttonId } = interaction.data
    await events.press({ ...base, buttonId, messageId: interaction.message.id, answer })
  } else if (interaction.type === InteractionType.ApplicationCommand) {
    await acknowledge(InteractionResponseType.DeferredChannelMessageWithSource)
    const answer = async (markdown: string) => {
      const [content = '(no text)', ...rest_] = renderDiscord(markdown)
      const body = { content, allowed_mentions: { parse: [] } }
      await rest.patch(Routes.webhookMessage(application_id, token), { auth: false, body })
      for (const text of rest_) await followUp(text)
    }
    const { name, options = [] } = interaction.data as { name: string; options?: { value?: unknown }[] }
    await events.command({ ...base, name, argument: String(options[0]?.value ?? ''), sentAtMs: timeOfId(id), answer })
  }
}
