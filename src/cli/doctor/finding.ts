/** One thing that the doctor looked at. */

/** ok; note: worth knowing, nothing is broken; broken: it needs a person, and the exit code says so. */
export type FindingVerdict = 'ok' | 'note' | 'broken'

export interface Finding {
  /** agents, platform, data, store, ports, tokens, disk. */
  readonly area: string
  readonly name: string
  readonly verdict: FindingVerdict
  /** What was found, in words. */
  readonly text: string
  /** What to do about it. */
  readonly remedy?: string
}
