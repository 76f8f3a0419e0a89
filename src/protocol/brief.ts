/**
 * The brief that comes with a lease: everything a turn needs besides its message. Built after the lease has committed,
 * the same for every worker, and without any secret of the platform.
 */
import type { Message } from './a2a.ts'

export interface Brief {
  /** The backend's name and its options. */
  readonly runtime: string
  readonly options: Readonly<Record<string, string>>
  readonly systemPrompt: string
  /** The backend's own token of this conversation's session on this host. */
  readonly sessionToken?: string
  readonly history?: readonly Message[]
  readonly workingDir: string
  readonly model?: string
  /** First try plus retries. */
  readonly maxAttempts: number
  /** What earlier attempts at the message noted. */
  readonly notes?: Readonly<Record<string, string>>
  /** The turn is paid for: how long it took is kept, with what it said it used. */
  readonly metered?: boolean
  /** It may not begin yet. */
  readonly parked?: { readonly afterMs: number; readonly reason: string }
  /** Added to the environment of the turn's children. */
  readonly env: Readonly<Record<string, string>>
}
