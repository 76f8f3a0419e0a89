/**
 * The backend seam: how the runtime runs one turn of any agent. A backend turns a Turn into a stream of events that
 * ends in exactly one `done` or `failed`. It knows nothing of inboxes, doors or retries.
 */
import type { Outbound } from '../client/outbound.ts'
import type { Clock } from '../clock.ts'
import type { MoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Processes } from '../process/processes.ts'
import type { Artifact, Message, MessageContent, Metadata, Part } from '../protocol/a2a.ts'
import type { FileDiff } from '../protocol/file-diff.ts'
import type { Request } from '../protocol/request.ts'
import type { BackendOptions } from './options.ts'

/** A program that speaks MCP on stdio. */
export interface McpStdioServer {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** An MCP server at a URL. */
export interface McpHttpServer {
  readonly name: string
  readonly url: string
  /** The variable in the environment of the turn that has the bearer token: for files and command lines. */
  readonly tokenVariable: string
  /** The token itself, for an agent that gets the server over stdin. */
  readonly token: string
  /** The same server as a program, for an agent that accepts no URL. */
  readonly program: McpStdioServer
}

export type McpServer = McpStdioServer | McpHttpServer

/** One attempt at one message: all that a backend gets to know about it. */
export interface Turn {
  /** Unique to this attempt. It marks every process that the attempt starts. */
  readonly id: string
  /** The id of the message in the inbox: unique, and the same on every attempt. */
  readonly messageId: string
  /** A conversation runs one turn at a time. A warm agent is kept under this id. */
  readonly conversationId: string
  readonly request: Request
  /** The text of the message for a model, with where it comes from. After an interrupted attempt, its first line says so. */
  readonly prompt: string
  readonly systemPrompt: string
  /** Which workspaces it can ask, and what the workspace remembers: for a definition with `readsBrief`. */
  readonly peers?: string
  readonly recalled?: string
  /** The last session token that this backend gave for the conversation. Only the backend can read it. */
  readonly sessionToken?: string
  readonly history?: readonly Message[]
  readonly workingDir: string
  readonly model?: string
  /** The MCP server of the workspace. Empty if the turn has no token for it. */
  readonly mcpServers: readonly McpServer[]
  /** The notes of earlier attempts at this message; empty at the first. */
  readonly notes: Readonly<Record<string, string>>
  /** Variables for a child process of this turn, in addition to the inherited, stripped environment. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Asks a person and waits for the answer. Meanwhile the runtime stops the turn's timeouts and frees its slot. No answer
   * in time, or a question that could not be asked, is a denial.
   */
  readonly ask: (request: PermissionRequest, signal: AbortSignal) => Promise<Decision>
  /**
   * Calls the listener each time the turn begins to wait for a delegation, with the promise of the end of the wait. That
   * time does not count against a time limit of the backend. The runtime pauses its own stall timer.
   */
  readonly onWait?: (listener: (over: Promise<void>) => void) => void
}

/** An action for which the agent needs a person's permission. The answer is valid for exactly this action. */
export interface PermissionRequest {
  /** Unique within the turn: a second request with the same id does not ask again. */
  readonly id: string
  /** The tool, by the agent's own name for it. */
  readonly tool: string
  /**
   * The exact action: the command line, or the tool's input as JSON. A text in parentheses says that the agent does not
   * tell exactly what it would do; no rule can be made of it.
   */
  readonly subject: string
}

export type Decision = 'allowed' | 'denied'

/** The state in which a successful turn leaves its task. */
export type Finality = 'completed' | 'input_required' | 'auth_required' | 'rejected'

export type BackendEvent =
  | { readonly type: 'session'; readonly token: string }
  /** The agent is alive. Restarts the stall timeout, has no content. */
  | { readonly type: 'activity' }
  | { readonly type: 'text'; readonly delta: string }
  /** Name and subject as a permission request has them. The subject is absent if the agent does not report it. */
  | {
      readonly type: 'tool'
      readonly name: string
      readonly subject?: string
      readonly state: 'started' | 'finished' | 'failed'
      /** The files that it changed, where the agent reports them with its end. */
      readonly diffs?: readonly FileDiff[]
    }
  /** `said` becomes the task's status, which the caller sees. The text alone is only shown to people who watch. */
  | { readonly type: 'status'; readonly text: string; readonly said?: MessageContent }
  /** Stored for the next attempt at this message. It is durable when the runtime reads the next event. */
  | { readonly type: 'note'; readonly key: string; readonly value: string }
  /** Usage of the whole turn so far; a later event replaces it. A number that the agent does not report is absent, not 0. */
  | { readonly type: 'usage'; readonly inputTokens?: number; readonly outputTokens?: number; readonly costUsd?: number }
  | { readonly type: 'artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }
  | {
      readonly type: 'done'
      /** The reply. Empty if the turn only has artifacts and `said`. */
      readonly parts: readonly Part[]
      readonly finality: Finality
      /** Metadata of the reply. */
      readonly metadata?: Metadata
      /** The message of the task's last status, if it is not the reply itself. */
      readonly said?: MessageContent
    }
  | { readonly type: 'failed'; readonly error: MoleculeError }

export type Validation =
  | { readonly ok: true; readonly version?: string; readonly note?: string }
  /** `problem` says what is wrong, `remedy` what the owner can do. */
  | { readonly ok: false; readonly problem: string; readonly remedy: string }

/** A feature that the backend needs and that this version of the program does not have. */
export interface Drift {
  /** For example "option --acp missing". */
  readonly missing: string
  /** What the backend does instead. Undefined: there is no way around it, and turns fail. */
  readonly instead?: string
}

/**
 * Contract: safe for concurrent turns. `run` never throws for an expected failure: the stream ends in exactly one
 * `done` or `failed`. Aborting the signal ends the turn at once. When the stream has ended, for any reason, no process of
 * that turn is left. The signal's reason is `canceled` if the message was cancelled; with any other reason the message
 * may run again. `close` is idempotent and leaves no process behind.
 */
export interface Backend {
  readonly name: string
  /** After this time without an event, the runtime ends the turn as timed out. Undefined: the backend has its own limit. */
  readonly stallMs?: number
  /** How the agent calls a tool of one of `turn.mcpServers`. Undefined: it is not given these servers. */
  readonly mcpToolName?: (server: string, tool: string) => string
  validate(signal: AbortSignal): Promise<Validation>
  run(turn: Turn, signal: AbortSignal): AsyncIterable<BackendEvent>
  /**
   * Starts the program and checks that it still has what the backend needs; empty = it has. Asks no model, changes no
   * file of the user and leaves no process. Rejects if it cannot find out, e.g. for lack of time.
   */
  probe?(signal: AbortSignal): Promise<readonly Drift[]>
  /**
   * What does not work with the program that was found: one sentence each, with what the owner can do. People see it with
   * the workspace. Starts nothing: it is known after `validate`, and a turn may learn more.
   */
  limits?(): readonly string[]
  close(): Promise<void>
}

/** The dependencies of a backend. */
export interface BackendContext {
  readonly processes: Processes
  /** What children inherit, without the platform's secrets. `childEnvironment` (process/) strips our own variables too. */
  readonly environment: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly log: Log
  /** Calls URLs that senders gave, within what the owner allows. Absent: only public addresses are allowed. */
  readonly outbound?: Outbound
}

export interface BackendDefinition {
  readonly name: string
  /** One line for `--help`. */
  readonly summary: string
  /** Every option key that the backend reads, with one line of help. It ignores other keys; `connect` warns of them. */
  readonly options: Readonly<Record<string, string>>
  /** Whether it reports tool use. The retry of a timed-out turn depends on it; `exec` cannot know and is retried. */
  readonly reportsTools: boolean
  /** The agent can run commands, so its prompt names its peers and a folder for files (peers-and-outbox.ts). */
  readonly runsCommands?: boolean
  /**
   * A program of the owner, not a model agent. It gets prompt, peers, memories and history beside its message, which stays
   * as it is (engine/files/program-brief.ts).
   */
  readonly readsBrief?: boolean
  /** It has no use for a system prompt and memories, so none are read for its turns. */
  readonly ignoresPrompt?: boolean
  /** The agent keeps no session, so each turn needs the earlier messages. Costs one query a turn. */
  readonly usesHistory?: boolean
  /** The agent remembers a conversation in a session of its own. A turn without one gets the stored conversation. */
  readonly keepsSessions?: boolean
  /** It starts no process, so its turns need no environment. Making one costs a tenth of a small turn. */
  readonly startsNothing?: boolean
  /** It calls no model that costs money: its turns are not metered, and `max_turns_per_hour` does not limit them. */
  readonly isFree?: boolean
  /** The version of the program with which it was tested. */
  readonly tested?: string
  /** The oldest version with which it was tested, if that is another one. */
  readonly testedFrom?: string
  /** Throws MoleculeError('bad_config') for invalid options. */
  create(options: BackendOptions, context: BackendContext): Backend
}
