/** Live messages as the rest of the chat door sees them: those who show something, and the deliveries that replace them. */
import type { ChatMessageKey, HandledMessage } from './store/chat-log.ts'

/** The one message of the bot that shows why a message waits, how long the agent works and what it has written so far. */
export interface LiveChatMessage {
  readonly message: HandledMessage
  /** There is a message on the service. */
  readonly isShown: boolean
  /** A delivery has it, or will have it: nothing more is shown. */
  readonly isTaken: boolean
  /** A message for an earlier message of a person came below it, so it cannot become the answer. */
  readonly isPassed: boolean
  /** How often limits of the service held it back: 1, 2, 4, ... */
  readonly slowness: number
  /** Posts it, or edits it. Best effort: true when the text is shown. */
  show(markdown: string): Promise<boolean>
  /** It ends with this text. A later `show` posts another one. */
  close(markdown?: string): Promise<void>
  /** What `close` says without a text. */
  onClose(text: () => string): void
  /** Its id, where the answer may replace it. Nothing more is shown from now on. */
  take(): Promise<string | undefined>
  /** The delivery that has taken it has stored its id. */
  release(): Promise<void>
  pass(): void
}

/** Those of a channel. */
export interface LiveChatMessages {
  /** That of a message of a person; made where it is new. */
  of(message: HandledMessage): LiveChatMessage
  /** After a start, before anything is sent: those that the last process has left. */
  load(): Promise<void>
  /** For an answer of this task: the id of the message that it may replace. */
  take(place: string, taskId: string): Promise<string | undefined>
  /** The taken one belongs to the delivery, which has stored its id. */
  release(place: string, taskId: string): Promise<void>
  /** A message for this task was posted. */
  posted(place: string, taskId: string): void
  /** The delivery of this task has ended: what still shows its progress ends too. */
  end(place: string, taskId: string): Promise<void>
  drop(message: ChatMessageKey): void
}
