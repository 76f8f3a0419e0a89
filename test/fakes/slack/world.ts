/** The state of the fake Slack: one workspace with channels, direct chats, people, messages, threads, files and reactions. */
import type { Said } from '../chat-service.ts'

export interface SlackChannelRow {
  readonly id: string
  readonly name: string
  /** Of a direct chat. */
  user?: string
  isArchived: boolean
  isMember: boolean
}

export interface SlackFileRow {
  readonly id: string
  readonly name: string
  readonly length: number
  readonly mimetype?: string
  readonly subtype?: string
  content: Uint8Array | undefined
  /** When the file was shared, and as which message. */
  shared?: { readonly channel: string; readonly ts: string; readonly atMs: number }
}

export interface SlackRow {
  readonly channel: string
  readonly ts: string
  readonly thread_ts?: string
  readonly user?: string
  readonly bot_id?: string
  readonly subtype?: string
  text: string
  blocks: readonly SlackBlock[]
  readonly files: readonly SlackFileRow[]
  readonly attachments: readonly object[]
  readonly metadata?: object
  edits: number
  isDeleted: boolean
}

export interface SlackBlock {
  readonly type: string
  readonly text?: { readonly type: string; readonly text: string }
  readonly elements?: readonly SlackButton[]
}

export interface SlackButton {
  readonly type: string
  readonly action_id: string
  readonly value: string
  readonly text: { readonly type: string; readonly text: string }
  readonly style?: string
}

export interface NewSlackRow extends Partial<Omit<SlackRow, 'ts' | 'edits' | 'isDeleted'>> {
  readonly channel: string
  readonly text: string
  readonly atMs?: number
}

const SCOPES = [
  ...['chat:write', 'commands', 'files:read', 'files:write', 'reactions:read', 'reactions:write', 'users:read'],
  ...['channels:history', 'groups:history', 'im:history', 'mpim:history'],
  ...['channels:read', 'groups:read', 'im:read', 'mpim:read'],
]

export class SlackWorld {
  readonly botToken = 'xoxb-111111-222222-fake-slack-bot-token-00'
  readonly appToken = 'xapp-1-A111-333333-fake-slack-app-token-00'
  readonly team = 'T0001'
  readonly bot = { user: 'U0BOT', bot: 'B0BOT', name: 'molecule' }
  readonly scopes = new Set(SCOPES)
  refusesEdits = false
  readonly channels = new Map<string, SlackChannelRow>()
  readonly users = new Map<string, { readonly name: string; readonly isBot: boolean }>()
  readonly rows: SlackRow[] = []
  readonly files = new Map<string, SlackFileRow>()
  /** `<channel> <ts> <name>` of the bot. */
  readonly reactions = new Set<string>()
  /** Signs in texts of the bot that notify people: `<!channel>`, `<@U1>`. */
  readonly pings: string[] = []
  isTokenRevoked = false
  baseUrl = ''
  #count = 0
  readonly #stamps = new Set<number>()

  id(kind: 'C' | 'D' | 'F'): string {
    this.#count += 1
    return `${kind}0${String(this.#count).padStart(5, '0')}`
  }

  addChannel(kind: 'direct' | 'group'): SlackChannelRow {
    const id = this.id(kind === 'direct' ? 'D' : 'C')
    const channel = { id, name: `channel-${id.toLowerCase()}`, isArchived: false, isMember: true }
    this.channels.set(id, channel)
    return channel
  }

  /** Unique in the whole workspace: seconds with six digits behind the point. */
  stamp(atMs = Date.now()): string {
    let micros = Math.floor(atMs) * 1000
    while (this.#stamps.has(micros)) micros += 1
    this.#stamps.add(micros)
    return (micros / 1_000_000).toFixed(6)
  }

  add({ atMs, ...given }: NewSlackRow): SlackRow {
    const row: SlackRow = {
      blocks: [],
      files: [],
      attachments: [],
      ...given,
      ts: this.stamp(atMs),
      edits: 0,
      isDeleted: false,
    }
    this.rows.push(row)
    return row
  }

  addFile(file: NonNullable<Said['files']>[number]): SlackFileRow {
    const { name, content, mediaType, isVoice } = file
    const row: SlackFileRow = {
      id: this.id('F'),
      name,
      content,
      length: content.length,
      mimetype: mediaType,
      subtype: isVoice ? 'slack_audio' : undefined,
    }
    this.files.set(row.id, row)
    return row
  }

  find(channel: string, ts: string): SlackRow | undefined {
    return this.rows.find((row) => row.channel === channel && row.ts === ts && !row.isDeleted)
  }

  /** As the API shows it. */
  show(row: SlackRow, options: { readonly withMetadata?: boolean } = {}): Record<string, unknown> {
    const { ts, user, bot_id, subtype, text, blocks, files, attachments, metadata, channel } = row
    const replies = this.rows.filter((other) => other.channel === channel && other.thread_ts === ts && !other.isDeleted)
    const root = row.thread_ts === undefined ? undefined : this.find(channel, row.thread_ts)
    return {
      type: 'message',
      ts,
      text,
      user,
      bot_id,
      subtype: subtype ?? (files.length > 0 ? 'file_share' : undefined),
      ...(replies.length > 0 && { thread_ts: ts, reply_count: replies.length, latest_reply: replies.at(-1)?.ts }),
      ...(row.thread_ts !== undefined && { thread_ts: row.thread_ts, parent_user_id: root?.user }),
      ...(blocks.length > 0 && { blocks }),
      ...(attachments.length > 0 && { attachments }),
      ...(files.length > 0 && { files: files.map((file) => this.showFile(file)) }),
      ...(options.withMetadata && metadata !== undefined && { metadata }),
    }
  }

  showFile({ id, name, length, mimetype, subtype }: SlackFileRow): object {
    const url = `${this.baseUrl}/files-pri/${this.team}-${id}`
    return { id, name, size: length, mimetype, subtype, url_private: url, url_private_download: `${url}/download` }
  }
}
