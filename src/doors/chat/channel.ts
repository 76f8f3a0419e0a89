/**
 * The channel seam: what a chat service (Discord, Telegram) supplies. The shared door (`chat.ts`) does the rest: pairing,
 * binding, order, progress, commands, catch-up, loop guard, deliveries. A channel translates and keeps no state that
 * matters after a restart. A channel has at most 250 lines and loads its library only in `open` and `check`.
 *
 * Errors: `check` and `connect` reject with a MoleculeError. `bad_config`: the service refuses the token or a setting of
 * the bot; the message is one sentence that says what to click, and it never has the token in it. Retryable
 * `provider_unreachable`: the service cannot be reached now. The other calls report what is expected as a value.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

/** One kind of channel. The list of all kinds is in `cli/channel-kinds.ts`. */
export interface ChannelKind {
  /** `discord`, `telegram`; also the default name of a channel. */
  readonly kind: string
  /** The variable that holds the token for `molecule gateway` and `molecule channel add`. */
  readonly tokenVariable: string
  /** How a person gets a token, step by step, before there is one. One step is one line. */
  readonly tokenSteps: readonly string[]
  /** What it needs besides the token. The platform refuses any other name, and a required one that is missing. */
  readonly settings?: readonly ChannelSetting[]
  /** Asks a person for what gives a token, such as a password, in place of a ready token. Only at a terminal. */
  logIn?(options: LogInOptions, signal: AbortSignal): Promise<LoggedIn>
  /** Asks the service about the token, without a connection that stays. */
  check(options: ChannelOptions, signal: AbortSignal): Promise<ChannelCheck>
  /** Makes the channel; nothing is dialled before `connect`. */
  open(options: ChannelOptions): Promise<Channel>
}

/** A further secret or setting of a kind. */
export interface ChannelSetting {
  /** In `settings` of `POST /channels` and in `ChannelOptions.settings`: small letters, digits and `_`. */
  readonly name: string
  /** The variable that holds it for `molecule gateway` and `molecule channel add`. */
  readonly variable: string
  /** What it is and where a person finds it, in one sentence. */
  readonly summary: string
  /** A secret is stored apart: no answer, log or argument of a process has it. */
  readonly isSecret: boolean
  readonly isRequired: boolean
}

export interface LogInOptions {
  /** Rejects when the person gives up. An empty answer is asked again. */
  ask(question: LogInQuestion): Promise<string>
  /** As the person gave it before. */
  readonly apiUrl?: string
}

export interface LogInQuestion {
  readonly text: string
  /** Not shown while it is typed, and kept nowhere. */
  readonly isSecret: boolean
}

/** What is stored of a log-in. */
export interface LoggedIn {
  readonly token: string
  readonly apiUrl?: string
  /** As in `ChannelOptions`. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface ChannelOptions {
  /** A secret: never in a log, an error or an argument of a process. */
  readonly token: string
  /** By the names of `ChannelKind.settings`. Absent: the kind has none. The secrets among them are secret like the token. */
  readonly settings?: Readonly<Record<string, string>>
  /** Another address of the service's API: a proxy of the owner, or a fake in tests. Default: the service's own. */
  readonly apiUrl?: string
  /**
   * The folder of this channel, for what must survive a restart; made at the first call, removed with the channel. Another
   * platform on the same store has another one. Absent in `check`.
   */
  readonly stateFolder?: () => Promise<string>
  readonly clock: Clock
  readonly log: Log
}

export interface ChannelCheck {
  readonly account: Account
  /** What the owner still has to click, e.g. the invite link. One step is one line. */
  readonly steps: readonly string[]
}

/** The bot's own account on the service. */
export interface Account {
  readonly id: string
  readonly name: string
}

/**
 * Contract: `connect` resolves when messages arrive, and keeps the connection until the signal aborts or `close`; it
 * reconnects by itself after a drop. One `send` or `edit` of a place runs at a time; the door sees to it.
 */
export interface Channel {
  readonly limits: ChannelLimits
  connect(events: ChannelEvents, options: ChannelConnectOptions, signal: AbortSignal): Promise<Account>
  /**
   * Splits Markdown into texts for `send`, each within the limits and valid alone. Pure: the same Markdown gives the
   * same texts. An empty Markdown gives no text.
   */
  render(markdown: string): readonly string[]
  send(message: ChatPost, signal: AbortSignal): Promise<SendResult>
  /**
   * Replaces the text of an own message and removes its buttons. Idempotent. Never `unknown`. `final`: that message can no longer
   * be edited, and an answer is then sent anew.
   */
  edit(message: MessageKey & { readonly text: string }, signal: AbortSignal): Promise<SendResult>
  /** Shows for some seconds that the bot is writing. A failure is ignored. */
  typing(place: string): Promise<void>
  /** Shows the state of a person's message; the state before disappears. A failure is ignored. */
  react(message: MessageKey, state: ReactionState): Promise<void>
  /** The bytes of a file. Throws `too_large` above the limit, else a retryable error. */
  download(file: IncomingFile, bytesMax: number, signal: AbortSignal): Promise<Uint8Array>
  /**
   * Channels and open threads that the bot sees, for places that the door has only by their id: a binding, a thread that
   * was opened while the bot was away. Called before `connect`, where there is a binding. Absent: a bound place is read by
   * its id, and its new threads are not found.
   */
  places?(signal: AbortSignal): Promise<readonly Place[]>
  /**
   * Messages of a place after a message or a time, the oldest first. Absent where the service itself keeps what the bot missed
   * (Telegram): then those messages arrive by `message` after `connect`.
   */
  history?(query: HistoryQuery, signal: AbortSignal): Promise<readonly IncomingMessage[]>
  /**
   * The id of an own message that may have arrived: the same nonce or the same text, not older than `sinceMs`, and later than
   * `afterMessageId`, so that an equal message of before is not taken for it. Undefined when it cannot be found; that is no
   * proof that it did not arrive.
   */
  findSent?(message: SoughtPost, signal: AbortSignal): Promise<string | undefined>
  /**
   * Answers a call of the service to `POST /channels/{channel}/webhook`, while the channel is connected. Anyone may make such
   * a call: the channel first verifies the signature of the raw body, in constant time. Absent: such a call gets 404.
   */
  webhook?(call: InboundWebhook, signal: AbortSignal): Promise<WebhookAnswer>
  /** Ends the connection. Idempotent. */
  close(): Promise<void>
}

/** A call of the service, as it came: nothing of it is verified. */
export interface InboundWebhook {
  readonly body: Uint8Array
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** After the `?`, without it. */
  readonly query: string
}

export interface WebhookAnswer {
  /** 200 to 599. */
  readonly status: number
  /** Only `content-type`, `retry-after` and those that begin with `x-` are sent. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ChannelLimits {
  /** Characters of one rendered text. */
  readonly textCharactersMax: number
  /** Characters of a rendered text that is sent together with files; default: as above. */
  readonly captionCharactersMax?: number
  readonly uploadBytesMax: number
  readonly downloadBytesMax: number
  /** The time between two edits of one message. */
  readonly editMs: number
  /** How long the sign of `typing` lasts. */
  readonly typingMs: number
  /** The service drops a second message with the same nonce for this long; 0 = it has no nonce. */
  readonly nonceMs: number
}

export interface ChannelConnectOptions {
  /** To be registered with the service, where it has a menu of commands. */
  readonly commands: readonly { readonly name: string; readonly text: string; readonly argument?: string }[]
}

/** Where a message is: a direct chat, a channel or group, a thread or topic. */
export interface Place {
  /** Unique within the channel; it contains everything that `send` needs: `123` or `-100123/45`. At most 100 characters. */
  readonly id: string
  /** A thread: the place that it is in. */
  readonly parentId?: string
  readonly isDirect: boolean
  /** For people: `#general`, `Ada`. */
  readonly name: string
}

export interface Author {
  readonly id: string
  readonly name: string
  readonly isBot: boolean
}

export interface IncomingFile {
  /** In the format of the channel, for `download`: a URL or a file id. */
  readonly ref: string
  readonly name: string
  readonly mediaType?: string
  readonly bytes?: number
  /** Its sender has spoken it: it may be turned into text. Absent: an Ogg file whose name begins with `voice` counts as one. */
  readonly isVoice?: boolean
}

/** A message of a person or of another bot. A channel drops its own messages. Plain JSON: held messages are stored. */
export interface IncomingMessage {
  /** The same for every copy of the event: the key of its admission. At most 100 characters. */
  readonly id: string
  /** The id for `react`, `history` and replies, where that is not `id` (Telegram: the update has another id). */
  readonly messageId?: string
  readonly place: Place
  readonly author: Author
  /** Without the mention of the bot. A command of a service without a menu stays as text: `/new`, without `@bot`. */
  readonly text: string
  /** In a direct chat, with a mention of the bot, or as a reply to one of its messages. */
  readonly isAddressed: boolean
  readonly sentAtMs: number
  /** It arrives as it is written, so it is not old even if a clock is wrong. Absent: it may have waited for the bot. */
  readonly isLive?: boolean
  readonly files: readonly IncomingFile[]
  /** The message that it replies to, or the part of it that was quoted. */
  readonly quoted?: QuotedMessage
  /** For people: who or what wrote it first. */
  readonly forwardedFrom?: string
  /** The same for the messages of one album, which the service gives one by one. */
  readonly groupId?: string
}

export interface QuotedMessage {
  readonly messageId?: string
  readonly authorName: string
  /** The bot itself wrote it. */
  readonly isOwn: boolean
  readonly text: string
}

/**
 * Contract: the door calls nothing back before a promise of these has resolved. `message` resolves when the message is
 * durable, or needs nothing more: only then may the channel confirm it to the service. It rejects when the message could
 * not be stored; the channel then gives the same message again later, where the service allows it. The channel calls
 * `message` in the order of the service.
 */
export interface ChannelEvents {
  message(message: IncomingMessage): Promise<void>
  /** A command of the service's menu. Never rejects, like `press`. */
  command(call: CommandCall): Promise<void>
  /** A person pressed a button of `ChatPost.buttons`. */
  press(press: ButtonPress): Promise<void>
  /** The whole message as it is now. It counts while the message waits for its turn. Never rejects, like the next two. */
  edited?(message: IncomingMessage): Promise<void>
  deleted?(message: MessageKey): Promise<void>
  /** A person put a reaction on a message. Only 👍, 👎 and 🛑 mean anything to the door; others need not be given. */
  reacted?(reaction: IncomingReaction): Promise<void>
  /** A place has another id from now on: its binding and its open answers go with it. */
  moved?(from: string, to: string): Promise<void>
  /**
   * A person brings the bot into a place, where the bot has to accept that. Only people who are let in may: the others get a
   * pairing, which waits for the owner, and the channel asks again until it is decided. Never rejects.
   */
  invited?(person: Author): Promise<'join' | 'wait' | 'leave'>
  /** Connected again, and messages may have been missed: the door reads the history of the places it knows. */
  reconnected(): void
  /** One sentence for the list of channels; undefined: all is well again. */
  problem(sentence: string | undefined): void
  /** The service refuses the token or a setting for good: a `bad_config` as in `connect`. The channel is closed. */
  refused(error: Error): void
}

export interface IncomingReaction {
  readonly place: Place
  readonly messageId: string
  /** Its name is empty where the service does not give it. */
  readonly author: Author
  /** As Unicode, without a tone of the skin: `👍`. `🛑` ends a task: a service that has none gives it for another one. */
  readonly emoji: string
  /** The service does not say in which thread of the place the message is. */
  readonly isInAnyThread?: boolean
}

export interface CommandCall {
  /** The same for every copy of the event. */
  readonly id: string
  readonly place: Place
  readonly author: Author
  /** `new`, `stop`, `status`, ... */
  readonly name: string
  readonly argument: string
  /** By the clock of the service; absent: now. */
  readonly sentAtMs?: number
  /** Only the person who gave the command sees the answer, where the service can do that. Markdown. */
  answer(markdown: string): Promise<void>
}

export interface ButtonPress {
  readonly id: string
  readonly place: Place
  readonly author: Author
  /** `ChatButton.id`. */
  readonly buttonId: string
  /** The message with the button. */
  readonly messageId: string
  /** A short text that only the person who pressed sees. */
  answer(text: string): Promise<void>
}

export interface MessageKey {
  readonly place: string
  readonly messageId: string
}

export interface ChatButton {
  /** At most 40 characters, so that it fits into the 64 bytes of Telegram. */
  readonly id: string
  readonly label: string
  readonly style: 'good' | 'plain' | 'bad'
}

/** One message. Plain JSON but for the files. */
export interface ChatPost {
  readonly place: string
  /** One text of `render`; may be empty with a file. */
  readonly text: string
  /** Shown as a reply to this message, where it still exists. */
  readonly replyTo?: string
  readonly buttons?: readonly ChatButton[]
  readonly files?: readonly ChatPostFile[]
  /** The same for every try of one message; 1 to 25 letters and digits. For services that drop a second copy. */
  readonly nonce: string
}

/** A post that may have arrived. */
export interface SoughtPost extends ChatPost {
  readonly sinceMs: number
  /** The last own message of the place that surely arrived before it. */
  readonly afterMessageId?: string
}

export interface ChatPostFile {
  readonly name: string
  readonly mediaType?: string
  readonly content: Uint8Array
}

/**
 * How a send ended; `send` throws nothing. `failed`: it has surely not arrived (a refusal, a 429, a 5xx with an answer, no
 * connection before the request was sent). `unknown`: the request may have been sent and its answer is missing; the door
 * decides whether to send again by `nonceMs`. A channel does not repeat an `unknown` send by itself.
 */
export type SendResult =
  | { readonly type: 'sent'; readonly messageId: string }
  | {
      readonly type: 'failed'
      /** One sentence without secrets. */
      readonly error: string
      /** Of a 429, or of a limit that the library of the service keeps. The delivery waits, and that is no failure. */
      readonly retryAfterMs?: number
      /** There is no connection: the request never left. That is no failure either. */
      readonly isUnsent?: boolean
      /** The place has this id now. */
      readonly movedTo?: string
      /** No retry helps: the place is gone, or the bot may not write there. */
      readonly final?: boolean
    }
  | { readonly type: 'unknown'; readonly error: string }

/** The state of a person's message, as a reaction. `waiting`: the agent asks something. */
export type ReactionState = 'seen' | 'running' | 'waiting' | 'done' | 'failed'

/** After a message, or after a time where the door has seen no message of the place. */
export type HistoryQuery = {
  readonly place: Place
  readonly limit: number
} & ({ readonly afterMessageId: string } | { readonly sinceMs: number })
