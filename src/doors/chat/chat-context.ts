/** Dependencies of the chat door, and of one connected channel. */
import type { Clock } from '../../clock.ts'
import type { Deliveries } from '../../inbox/delivery.ts'
import { requestDoor } from '../../inbox/delivery-name.ts'
import type { Budgets, DeadLetters, PendingAsks } from '../../inbox/owners.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Log } from '../../log.ts'
import type { ReadStore } from '../../store/store.ts'
import type { WorkspaceLifecycle, Workspaces } from '../../workspaces/workspace.ts'
import type { WorkspaceLogs } from '../workspace-logs.ts'
import type {
  Account,
  Channel,
  ChannelKind,
  ChatButton,
  MessageKey,
  Place,
  ReactionState,
  SendResult,
} from './channel.ts'
import type { LiveChatMessages } from './live-seam.ts'
import type { StateFolders } from './state-folders.ts'
import type { Arrivals } from './store/arrivals.ts'
import type { Channels, StoredChannel } from './store/channels.ts'
import type { ChatLog } from './store/chat-log.ts'
import type { HomeChats } from './store/home-chats.ts'
import type { Pairings } from './store/pairings.ts'
import type { PromptLog } from './store/prompt-log.ts'

export interface ChatContext {
  readonly channels: Channels
  readonly pairings: Pairings
  readonly chatLog: ChatLog
  readonly homes: HomeChats
  readonly promptLog: PromptLog
  readonly arrivals: Arrivals
  readonly reception: Reception
  readonly logs: Pick<WorkspaceLogs, 'follow' | 'resolveCursor'>
  readonly store: ReadStore
  readonly pending: PendingAsks
  readonly budgets: Budgets
  readonly deadLetters: Pick<DeadLetters, 'replay'>
  readonly deliveries: Deliveries
  readonly workspaces: Pick<Workspaces, 'get' | 'idsNamed' | 'list'>
  readonly lifecycle: Pick<WorkspaceLifecycle, 'change'>
  /** Undefined for an unknown kind. */
  readonly findKind: (kind: string) => Promise<ChannelKind | undefined>
  readonly stateFolders: StateFolders
  /** Absent without the setting `voice-command`: then voice notes stay files. */
  readonly transcribe?: Transcribe
  readonly clock: Clock
  readonly log: Log
}

export interface VoiceNote {
  readonly name: string
  readonly content: Uint8Array
}

/** The words of a voice note; never empty. Rejects when the command fails, or when the signal stops it. */
export type Transcribe = (note: VoiceNote, signal: AbortSignal) => Promise<string>

/** A channel that is connected, with everything that works on it. */
export interface SessionContext extends ChatContext {
  readonly stored: StoredChannel
  readonly channel: Channel
  readonly account: Account
  /** The name of this channel in deliveries. */
  readonly door: string
  /** Aborts when the session ends: nothing new begins. */
  readonly signal: AbortSignal
  /** Aborts some seconds later: a send that has begun may hear its answer. */
  readonly channelSignal: AbortSignal
  /** Runs the sends of a place one after the other, by their rank. */
  readonly inPlace: InPlace
  readonly signs: Signs
  /** How long what is sent by this door waits in a place: the rest of its quiet hours. Absent: it never does. */
  readonly quietMs?: (place: string) => Promise<number>
  /** A person was let in: the held messages go on. */
  letIn(): void
  readonly live: LiveChatMessages
  /** Prompts whose message says already how they ended, although its send may not have been answered yet. */
  readonly closedPrompts: Set<string>
  /** As in `ChannelEvents`. */
  moved(from: string, to: string): Promise<void>
  /** Sends a short text of the door, best effort: it is not a delivery. How the last try ended. */
  say(post: ShortPost): Promise<SendResult | undefined>
}

/** The order in which the sends of a place go out. */
export type SendRank = 'answer' | 'prompt' | 'progress'

export type InPlace = <T>(place: string, rank: SendRank, work: () => Promise<T>) => Promise<T>

/** Reactions and typing (`send/signs.ts`). */
export interface Signs {
  /**
   * Shows the state of a message. A state that still waits is replaced by a newer one of the same message. Resolves when the
   * last of them is shown, or the session ends.
   */
  react(message: MessageKey, state: ReactionState): Promise<void>
  /** The answer to this message did not arrive: it is shown as failed, whatever its task says. */
  undelivered(message: MessageKey): void
  /** The message was deleted: nothing is shown on it any more. */
  forget(message: MessageKey): void
  typing(place: string): void
  /** True when the progress of a place may be shown now. */
  mayShowProgress(place: string): boolean
  /** The service asks to wait with messages to this place: until then no progress is shown there. */
  hold(place: string, forMs: number): void
}

export interface ShortPost {
  readonly place: string
  readonly markdown: string
  readonly replyTo?: string
  readonly buttons?: readonly ChatButton[]
  /** As in `ChatPost`; for a text that may be sent again after a crash. */
  readonly nonce?: string
  /** Default: `prompt`. */
  readonly rank?: SendRank
}

/** The workspace that answers in a place: its own, that of its parent, else the default of the channel. */
export const answeringWorkspace = async (
  place: Place,
  { channels, stored }: Pick<SessionContext, 'channels' | 'stored'>,
): Promise<string | undefined> => (await channels.boundTo(stored.name, place)) ?? stored.workspaceId

/** The name of a channel in deliveries and reply addresses. */
export const deliveryDoor = (channel: string): string => `chat:${channel}`

/** Prompts are deliveries too. They have a line of their own in each place: an answer never waits for one. */
export const promptDoor = (channel: string): string => requestDoor(deliveryDoor(channel))

/** What the platform says by itself has a line of its own too: in quiet hours it waits, and an answer does not. */
export const homeDoor = (channel: string): string => `${deliveryDoor(channel)} (home)`

/** All doors of a channel in deliveries. */
export const doorsOf = (channel: string): readonly string[] => [
  deliveryDoor(channel),
  promptDoor(channel),
  homeDoor(channel),
]

/** The channel of one of these doors; undefined for a door of another kind. */
export const channelOfDoor = (door: string): string | undefined => /^chat:([a-z0-9-]+)/.exec(door)?.[1]

/** The first message of a Markdown text. Only the beginning is rendered: the text may be as long as an answer. */
export function firstText(
  { render, limits }: Pick<Channel, 'render' | 'limits'>,
  markdown: string,
): string | undefined {
  return render(markdown.slice(0, 2 * limits.textCharactersMax))[0]
}
