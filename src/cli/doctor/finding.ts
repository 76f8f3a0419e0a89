/** The result of one check of `molecule doctor`. */

/** `note`: worth knowing, nothing is broken. `broken`: a user must act, and the exit code is 1. */
export type FindingVerdict = 'ok' | 'note' | 'broken'

export interface Finding {
  /** agents, platform, data, store, ports, tokens, disk. */
  readonly area: string
  readonly name: string
  readonly verdict: FindingVerdict
  /** What the check found. */
  readonly text: string
  /** What to do about it. */
  readonly remedy?: string
}
