/**
 * The backend seam: how the runtime runs one turn of any agent. A backend turns a Turn into a stream of events that
 * ends in exactly one `done` or `failed`; it knows nothing of inboxes, doors or retries.
 */
import type { Outbound } from '../client/outbound.ts'
import type { Clock } from '../clock.ts'
import type { MoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Processes } from '../process/processes.ts'
import type { Artifact, Message, MessageContent, Metadata, Part } from '../protocol/a2a.ts'
import type { Request } from '../protocol/request.ts'
import type { BackendOptions } from './options.ts'

export interface McpServer {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** One attempt at one message, with everything the backend may need and nothing it must not have. */
export interface Turn {
  /** Unique to this attempt; it marks every process that the attempt starts. */
  readonly id: string
  /** The inbox's own id of the message: the same on every attempt, and nobody else's. */
  readonly messageId: string
  /** Of the conversation, one turn at a time: what a warm agent is kept under. */
  readonly conversationId: string
  readonly request: Request
  /** The text for a model agent: the message's text, with a first line added when an earlier attempt was interrupted. */
  readonly prompt: string
  readonly systemPrompt: string
  /** The backend's own token of the conversation's session, as it last gave it; opaque to everyone else. */
  readonly sessionToken?: string
  readonly history?: readonly Message[]
  readonly workingDir: string
  readonly model?: string
  readonly mcpServers: readonly McpServer[]
  /** What earlier attempts at this message noted; empty at the first. */
  readonly notes: Readonly<Record<string, string>>
  /** What a child of this turn gets on top of the inherited, stripped environment. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Asks a person and waits, without end as far as the turn's own clocks go: the runtime stops them and the turn gives
   * up its slot. Nobody's answer in time, and a question that could not be put, are a denial.
   */
  readonly ask: (request: PermissionRequest, signal: AbortSignal) => Promise<Decision>
}

/** What an agent wants to do and may not without a person's word; the answer is bound to exactly this. */
export interface PermissionRequest {
  /** Unique within the turn: asking again under the same id asks nothing twice. */
  readonly id: string
  /** The tool, in the agent's own word for it. */
  readonly tool: string
  /** Exactly what would be done: the command line, or the tool's input as JSON. */
  readonly subject: string
}

export type Decision = 'allowed' | 'denied'

/** How a turn that went well leaves its task. */
export type Finality = 'completed' | 'input_required' | 'auth_required' | 'rejected'

export type BackendEvent =
  | { readonly type: 'session'; readonly token: string }
  /** A sign of life without content; keeps the stall clock from running out. */
  | { readonly type: 'activity' }
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool'; readonly name: string; readonly state: 'started' | 'finished' | 'failed' }
  /** `said` is for the caller to see as the task's status; the text alone is for whoever watches. */
  | { readonly type: 'status'; readonly text: string; readonly said?: MessageContent }
  /** Kept at once for the next attempt at this message: when the stream is asked to go on, the note is durable. */
  | { readonly type: 'note'; readonly key: string; readonly value: string }
  /** Of the whole turn so far: a later one replaces it. What the agent does not say is left out, never 0. */
  | { readonly type: 'usage'; readonly inputTokens?: number; readonly outputTokens?: number; readonly costUsd?: number }
  | { readonly type: 'artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }
  | {
      readonly type: 'done'
      /** The reply; none where artifacts and `said` are all there is. */
      readonly parts: readonly Part[]
      readonly finality: Finality
      /** Of the reply. */
      readonly metadata?: Metadata
      /** What the task's last status says, where that is not the reply itself. */
      readonly said?: MessageContent
    }
  | { readonly type: 'failed'; readonly error: MoleculeError }

export type Validation =
  | { readonly ok: true; readonly version?: string; readonly note?: string }
  /** `problem` says what is wrong, `remedy` what to do, both in plain words. */
  | { readonly ok: false; readonly problem: string; readonly remedy: string }

/** What a program no longer has of what its backend needs of it. */
export interface Drift {
  /** In a few words: "option --acp missing". */
  readonly missing: string
  /** What is done about it, in as many; undefined: nothing can be, and its turns fail. */
  readonly instead?: string
}

/**
 * Contract: safe for concurrent turns. `run` never throws for an expected failure: the stream ends in exactly one
 * `done` or `failed`. Aborting the signal ends the turn at once, and when the stream has ended, whichever way, no
 * process of that turn is left. The signal's reason is `canceled` when somebody cancelled the message; with any other
 * the message may be run again. `close` is called once and is idempotent; it leaves no process behind.
 */
export interface Backend {
  readonly name: string
  /** No event for this long and the runtime ends the turn as timed out; undefined = the backend keeps its own time. */
  readonly stallMs?: number
  validate(signal: AbortSignal): Promise<Validation>
  run(turn: Turn, signal: AbortSignal): AsyncIterable<BackendEvent>
  /**
   * Whether the program still speaks as expected: it is started and greeted, no model is asked, no file of the user's
   * is changed and no process is left. Empty = it does. Rejects where that could not be told, as in too little time.
   */
  probe?(signal: AbortSignal): Promise<readonly Drift[]>
  close(): Promise<void>
}

/** What a backend is built with besides its options. */
export interface BackendContext {
  readonly processes: Processes
  /** What this process inherited; a child gets it stripped (process/environment.ts), never as it is. */
  readonly environment: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly log: Log
  /** The way to URLs that senders gave, with what the owner allows; absent where nothing but public ones may be asked. */
  readonly outbound?: Outbound
}

export interface BackendDefinition {
  readonly name: string
  /** One line for `--help`. */
  readonly summary: string
  /** Every option key the backend reads, with one line each; others are ignored by it and warned of by `connect`. */
  readonly options: Readonly<Record<string, string>>
  /** Whether retrying a time-out is safe to decide by tool use; `exec` cannot tell and retries. */
  readonly reportsTools: boolean
  /** The agent runs commands of its own: it is told of its peers and given a folder for files (peers-and-outbox.ts). */
  readonly runsCommands?: boolean
  /** Keeps no session of its own: each turn needs what was said before. Costs a query a turn, so only where needed. */
  readonly usesHistory?: boolean
  /** Starts no process: its turns need no environment, which costs a tenth of a small turn to make. */
  readonly startsNothing?: boolean
  /** Asks no model that is paid for: its turns are not metered, and `max_turns_per_hour` does not hold them up. */
  readonly isFree?: boolean
  /** The version of its program that it was tested with. */
  readonly tested?: string
  /** Throws MoleculeError('bad_config') for options that cannot work. */
  create(options: BackendOptions, context: BackendContext): Backend
}
