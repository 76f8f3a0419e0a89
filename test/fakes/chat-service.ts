/**
 * What the channel contract needs of a fake chat service. The fake runs in the process of the test; the platform is
 * another process that reaches it by `apiUrl`.
 */
import type { Author, Place } from '../../src/doors/chat/channel.ts'

export interface ChatService {
  readonly apiUrl: string
  /** The one token that it accepts. */
  readonly token: string
  /** A new direct chat, a new channel or group, a new thread or topic in a channel or group. */
  newPlace(kind: 'direct' | 'group' | 'thread', parent?: Place): Place
  /** A person (or a bot) writes. The service keeps it while the platform is away; the id of the message. */
  say(message: Said): string
  /** A person changes the text of an own message. */
  edit(message: { place: Place; messageId: string; text: string }): void
  /** A person deletes an own message. Absent where the service tells a bot nothing of it. */
  remove?(message: { place: Place; messageId: string }): void
  /** What the bot has written in a place, in the order of arrival, each as it is shown now. */
  written(place: Place): readonly Written[]
  /** What the bot shows on a message: the last state of `react`. */
  reaction(place: Place, messageId: string): string | undefined
  /** A person presses the button with this label of a message of the bot. Resolves with what only the person sees. */
  press(press: { place: Place; messageId: string; label: string; author: Author }): Promise<string>
  /**
   * A person puts a reaction on a message: 👍, 👎 or 🛑, or what the service has in its place. The bot hears of it only where it
   * asked the service for reactions.
   */
  react(reaction: { place: Place; messageId: string; emoji: '👍' | '👎' | '🛑'; author: Author }): void
  /** A person gives a command of the menu, or writes it where there is no menu; resolves with the answer. */
  command(command: { place: Place; author: Author; name: string; argument?: string }): Promise<string>
  /**
   * The next send of the bot fails this way. `lost_answer`: it arrives, and the connection ends without an answer.
   * `no_answer`: it arrives, and the answer never comes. `refused`: the bot may not write there.
   */
  failNextSend(fault: 'rate_limited' | 'server_error' | 'lost_answer' | 'no_answer' | 'refused'): void
  /** From now on the service refuses to change a message of the bot, as it does with one that a person has removed. */
  refuseEdits(): void
  /** From now on the service has its real limits, for each chat and for the bot, where a second of it takes so long. */
  keepLimits(secondMs: number): void
  /** How many calls with a new message the service took: an album is one call. */
  sends(): number
  /** How often the bot was told to wait because of these limits. */
  refusals(): number
  /** The bot may no longer attach files; and it may no longer read the history, where the service has that right. */
  denyRights(): void
  /** Downloads of files get no answer until the returned function is called. */
  holdDownloads(): () => void
  /** The next read of a history fails, where the service has one that can fail. */
  failNextHistory?(): void
  /** Ends the connections of the bot, as a broken network does. */
  dropConnections(): void
  /** True while a bot is connected. */
  isConnected(): boolean
  /** How often the bot showed that it writes. */
  typings(place: Place): number
  close(): Promise<void>
}

export interface Said {
  readonly place: Place
  readonly text: string
  readonly author?: Author
  /** Mentions the bot; direct messages need no mention. */
  readonly mentions?: boolean
  readonly sentAtMs?: number
  readonly files?: readonly SaidFile[]
  /** Delivers the event a second time. */
  readonly twice?: boolean
  /** The id of the message that it replies to. */
  readonly replyTo?: string
  /** Who wrote it first, where the service tells. */
  readonly forwardedFrom?: string
  /** The id of its album, where the service has albums. */
  readonly album?: string
}

export interface SaidFile {
  readonly name: string
  readonly content: Uint8Array
  readonly mediaType?: string
  /** Spoken with the service's own button for voice notes. */
  readonly isVoice?: boolean
}

export interface Written {
  readonly id: string
  readonly text: string
  readonly buttons: readonly string[]
  readonly files: readonly { readonly name: string; readonly content: Uint8Array }[]
  /** How often it was edited. */
  readonly edits: number
}
