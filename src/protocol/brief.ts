/**
 * The brief of a lease: everything that a turn needs besides its message. It is built after the lease is committed, is
 * the same for every worker, and contains no secret of the platform.
 */
import type { Message } from './a2a.ts'

/** Why a message waits, where a person can end the wait. A budget has rows of its own. */
export const WAITS_FOR = ['turns_per_hour'] as const
export type WaitsFor = (typeof WAITS_FOR)[number]

export interface Brief {
  /** The backend's name and its options. */
  readonly runtime: string
  readonly options: Readonly<Record<string, string>>
  readonly systemPrompt: string
  /** Which workspaces it can ask. Apart from the prompt, because only the worker knows whether its program has `a2a`. */
  readonly peers?: string
  /** The backend's own token of this conversation's session on this host. */
  readonly sessionToken?: string
  readonly history?: readonly Message[]
  /** A new session continues a stored conversation: `text` precedes the prompt, `notice` goes with the answer. */
  readonly earlierConversation?: { readonly text?: string; readonly notice?: string }
  /** What the workspace remembers, for the first turn of a conversation. It precedes the prompt. */
  readonly recalled?: string
  readonly workingDir: string
  readonly model?: string
  /** First try plus retries. */
  readonly maxAttempts: number
  /** Nobody set `max_attempts`, so a bridge may keep a message that its handler fails. Absent: an older platform. */
  readonly attemptsUnset?: boolean
  /** How long a message may wait for a rate limit without an end. Absent: the platform cannot park messages. */
  readonly rateLimitPatienceMs?: number
  /** The notes of earlier attempts at the message. */
  readonly notes?: Readonly<Record<string, string>>
  /** The platform has an MCP server for the workspace. Absent: an older platform. */
  readonly hasMcp?: boolean
  /** The turn costs money: its duration is stored, with the usage that the agent reports. */
  readonly metered?: boolean
  /** `max_cost_usd_per_day` of the workspace. */
  readonly costUsdPerDayMax?: number
  /** The turn may not begin yet. */
  readonly parked?: { readonly afterMs: number; readonly reason: string; readonly waitsFor?: WaitsFor }
  /** Added to the environment of the turn's processes. */
  readonly env: Readonly<Record<string, string>>
}
