/**
 * The methods of the fake Slack's Web API, each with its scope, its calls a minute, and what the real one refuses. A method
 * returns the fields of its answer, or throws a refusal by its name.
 */
import { METADATA_TYPE } from '../../../src/doors/slack/slack-messages.ts'
import type { SlackSockets } from './socket-mode.ts'
import type { SlackBlock, SlackRow, SlackWorld } from './world.ts'

export class SlackRefusal extends Error {
  readonly needed: string | undefined

  constructor(name: string, needed?: string) {
    super(name)
    this.needed = needed
  }
}

export interface MethodContext {
  readonly world: SlackWorld
  readonly sockets: SlackSockets
}

export interface SlackMethod {
  readonly token: 'bot' | 'app'
  /** One of them is needed; of a history it depends on the channel. */
  readonly scope?: (args: Args) => string
  readonly perMinute: number
  readonly run: (args: Args, context: MethodContext) => object
}

export type Args = Readonly<Record<string, string | undefined>>

const TEXT_CHARACTERS_MAX = 40_000
const UPDATE_CHARACTERS_MAX = 4000
/** A file is shared some moments after the answer. */
const SHARE_MS = 30
const historyScope = ({ channel = '' }: Args) => (channel.startsWith('D') ? 'im:history' : 'channels:history')

export const METHODS: Readonly<Record<string, SlackMethod>> = {
  'auth.test': {
    token: 'bot',
    perMinute: 600,
    run: (_args, { world: { bot, team } }) => ({ user_id: bot.user, bot_id: bot.bot, user: bot.name, team_id: team }),
  },
  'apps.connections.open': {
    token: 'app',
    perMinute: 20,
    run: (_args, { sockets, world }) => ({ url: sockets.open(world.baseUrl) }),
  },
  'users.info': {
    token: 'bot',
    scope: () => 'users:read',
    perMinute: 100,
    run({ user = '' }, { world }) {
      const found = world.users.get(user)
      if (found === undefined) throw new SlackRefusal('user_not_found')
      return { user: { id: user, name: found.name, is_bot: found.isBot, profile: { display_name: found.name } } }
    },
  },
  'users.conversations': {
    token: 'bot',
    scope: () => 'channels:read',
    perMinute: 50,
    run: (_args, { world }) => ({
      channels: [...world.channels.values()]
        .filter(({ id, isMember, isArchived }) => id.startsWith('C') && isMember && !isArchived)
        .map(({ id, name }) => ({ id, name })),
    }),
  },
  'conversations.info': {
    token: 'bot',
    scope: ({ channel = '' }) => (channel.startsWith('D') ? 'im:read' : 'channels:read'),
    perMinute: 50,
    run({ channel = '' }, { world }) {
      const found = world.channels.get(channel)
      if (found === undefined) throw new SlackRefusal('channel_not_found')
      return { channel: { id: found.id, ...(found.user === undefined ? { name: found.name } : { user: found.user }) } }
    },
  },
  'conversations.history': { token: 'bot', scope: historyScope, perMinute: 50, run: readHistory },
  'conversations.replies': { token: 'bot', scope: historyScope, perMinute: 50, run: readHistory },
  'chat.postMessage': {
    token: 'bot',
    scope: () => 'chat:write',
    // One a second and channel, which `web-api.ts` counts.
    perMinute: 6000,
    run(args, { world }) {
      const channel = writableChannel(args, world)
      const { text = '', thread_ts } = args
      if (text === '') throw new SlackRefusal('no_text')
      if (text.length > TEXT_CHARACTERS_MAX) throw new SlackRefusal('msg_too_long')
      if (thread_ts !== undefined && !world.find(channel, thread_ts)) throw new SlackRefusal('thread_not_found')
      const row = world.add({
        ...own(world),
        channel,
        thread_ts,
        text,
        blocks: readBlocks(args),
        metadata: readMetadata(args),
      })
      notePings(text, world)
      return { ts: row.ts, channel, message: world.show(row) }
    },
  },
  'chat.update': {
    token: 'bot',
    scope: () => 'chat:write',
    perMinute: 50,
    run(args, { world }) {
      const channel = writableChannel(args, world)
      const { ts = '', text = '' } = args
      const row = world.find(channel, ts)
      if (row === undefined) throw new SlackRefusal('message_not_found')
      if (row.user !== world.bot.user || world.refusesEdits) throw new SlackRefusal('cant_update_message')
      if (text === '') throw new SlackRefusal('no_text')
      if (text.length > UPDATE_CHARACTERS_MAX) throw new SlackRefusal('msg_too_long')
      // Blocks that are not given stay.
      if (args['blocks'] !== undefined) row.blocks = readBlocks(args)
      row.text = text
      row.edits += 1
      notePings(text, world)
      return { ts, channel, text }
    },
  },
  'reactions.add': { token: 'bot', scope: () => 'reactions:write', perMinute: 50, run: react('add') },
  'reactions.remove': { token: 'bot', scope: () => 'reactions:write', perMinute: 50, run: react('remove') },
  'files.getUploadURLExternal': {
    token: 'bot',
    scope: () => 'files:write',
    perMinute: 100,
    run({ filename = '', length = '' }, { world }) {
      const bytes = Number(length)
      if (filename === '' || !Number.isInteger(bytes) || bytes < 1) throw new SlackRefusal('invalid_arguments')
      const id = world.id('F')
      world.files.set(id, { id, name: filename, length: bytes, content: undefined })
      return { upload_url: `${world.baseUrl}/upload/v1/${id}`, file_id: id }
    },
  },
  'files.completeUploadExternal': {
    token: 'bot',
    scope: () => 'files:write',
    perMinute: 100,
    run(args, { world }) {
      const channel = writableChannel({ ...args, channel: args['channel_id'] }, world)
      const files = (readJson(args['files']) as { id: string }[]).map(({ id }) => world.files.get(id))
      if (files.length === 0 || files.some((file) => file?.content === undefined || file.shared !== undefined))
        throw new SlackRefusal('invalid_arguments')
      if (args['blocks'] !== undefined && args['initial_comment'] !== undefined)
        throw new SlackRefusal('invalid_arguments')
      const blocks = readBlocks(args)
      const text = args['initial_comment'] ?? blocks.flatMap((block) => block.text?.text ?? []).join('')
      const shown = files.flatMap((file) => file ?? [])
      const row = world.add({ ...own(world), channel, thread_ts: args['thread_ts'], text, blocks, files: shown })
      for (const file of shown) file.shared = { channel, ts: row.ts, atMs: Date.now() + SHARE_MS }
      notePings(text, world)
      return { files: shown.map(({ id, name }) => ({ id, title: name })) }
    },
  },
  'files.info': {
    token: 'bot',
    scope: () => 'files:read',
    perMinute: 100,
    run({ file = '' }, { world }) {
      const found = world.files.get(file)
      if (found === undefined) throw new SlackRefusal('file_not_found')
      const { shared } = found
      const isShared = shared !== undefined && shared.atMs <= Date.now()
      return { file: { id: file, shares: isShared ? { private: { [shared.channel]: [{ ts: shared.ts }] } } : {} } }
    },
  },
}

const own = ({ bot }: SlackWorld) => ({ user: bot.user, bot_id: bot.bot })

function readJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    throw new SlackRefusal('invalid_json')
  }
}

function writableChannel({ channel = '' }: Args, world: SlackWorld): string {
  const found = world.channels.get(channel)
  if (found === undefined) throw new SlackRefusal('channel_not_found')
  if (found.isArchived) throw new SlackRefusal('is_archived')
  if (!found.isMember) throw new SlackRefusal('not_in_channel')
  return channel
}

function readMetadata(args: Args): object | undefined {
  if (args['metadata'] === undefined) return undefined
  const metadata = readJson(args['metadata']) as { event_type?: unknown; event_payload?: unknown } | null
  if (metadata?.event_type !== METADATA_TYPE || typeof metadata.event_payload !== 'object')
    throw new SlackRefusal('invalid_metadata_format')
  return metadata
}

/** Sections of at most 3,000 characters, at most 25 buttons with labels of at most 75, no action twice. */
function readBlocks(args: Args): readonly SlackBlock[] {
  if (args['blocks'] === undefined) return []
  const blocks = readJson(args['blocks'])
  if (!Array.isArray(blocks) || blocks.length > 50) throw new SlackRefusal('invalid_blocks')
  const actions = new Set<string>()
  for (const { type, text, elements = [] } of blocks as SlackBlock[]) {
    const { length } = text?.text ?? ''
    if (type === 'section' && (text?.type !== 'mrkdwn' || length < 1 || length > 3000))
      throw new SlackRefusal('invalid_blocks')
    if (type !== 'section' && (type !== 'actions' || elements.length < 1 || elements.length > 25))
      throw new SlackRefusal('invalid_blocks')
    for (const button of elements) {
      const label = button.text?.type === 'plain_text' ? button.text.text.length : 0
      const isRight = button.type === 'button' && label >= 1 && label <= 75 && button.value.length <= 2000
      const isStyled = button.style === undefined || ['primary', 'danger'].includes(button.style)
      if (!isRight || !isStyled || actions.has(button.action_id)) throw new SlackRefusal('invalid_blocks')
      actions.add(button.action_id)
    }
  }
  return blocks
}

/** A sign that is no link notifies people. */
function notePings(text: string, world: SlackWorld): void {
  for (const [sign] of text.matchAll(/<[^>]*>/g)) if (!/^<(https?|mailto):/.test(sign)) world.pings.push(sign)
}

/** A channel comes the newest first, a thread the oldest first and with its root. */
function readHistory(args: Args, { world }: MethodContext): object {
  const { channel = '', ts, oldest = '0', limit = '100', cursor = '0' } = args
  if (!world.channels.get(channel)) throw new SlackRefusal('channel_not_found')
  if (ts !== undefined && !world.find(channel, ts)) throw new SlackRefusal('thread_not_found')
  const isIn = (row: SlackRow) =>
    row.channel === channel && !row.isDeleted && (ts === undefined ? row.thread_ts === undefined : row.thread_ts === ts)
  const after = world.rows.filter((row) => isIn(row) && Number(row.ts) > Number(oldest))
  after.sort((one, other) => Number(one.ts) - Number(other.ts))
  const root = ts === undefined ? undefined : world.find(channel, ts)
  const all = root === undefined ? after.reverse() : [root, ...after]
  const [from, count] = [Number(cursor), Number(limit)]
  const page = all.slice(from, from + count)
  const withMetadata = args['include_all_metadata'] === 'true'
  const next_cursor = from + count < all.length ? String(from + count) : ''
  return { messages: page.map((row) => world.show(row, { withMetadata })), response_metadata: { next_cursor } }
}

function react(verb: 'add' | 'remove'): SlackMethod['run'] {
  return ({ channel = '', timestamp = '', name = '' }, { world }) => {
    if (!world.find(channel, timestamp)) throw new SlackRefusal('message_not_found')
    if (!/^[a-z0-9_+-]+$/.test(name)) throw new SlackRefusal('invalid_name')
    const key = `${channel} ${timestamp} ${name}`
    if (verb === 'add' && world.reactions.has(key)) throw new SlackRefusal('already_reacted')
    if (verb === 'remove' && !world.reactions.has(key)) throw new SlackRefusal('no_reaction')
    if (verb === 'add') world.reactions.add(key)
    else world.reactions.delete(key)
    return {}
  }
}
