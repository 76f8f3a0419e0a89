/**
 * When a workspace that runs elsewhere counts as offline. Presence shows it on the workspace, and the inbox tells it to
 * callers that wait: both must give the same answer.
 */

/** Three missed heartbeats of 30 s. Then the workspace is offline. */
export const SILENCE_MS_MAX = 90_000

/** The last heartbeat of a workspace that runs elsewhere; undefined = there was none. */
export interface LastHeartbeat {
  readonly nowMs: number
  readonly heardAtMs: number | undefined
  /** Its last bridge said that it stops, and sent no heartbeat since. */
  readonly hasSignedOff?: boolean | undefined
}

/** One sentence, or undefined when the workspace is not offline. */
export function whyOffline({ nowMs, heardAtMs, hasSignedOff = false }: LastHeartbeat): string | undefined {
  if (heardAtMs === undefined) return 'it has never connected'
  if (hasSignedOff) return 'its bridge was stopped'
  const silentMs = nowMs - heardAtMs
  return silentMs > SILENCE_MS_MAX ? `no heartbeat for ${Math.floor(silentMs / 1000)} s` : undefined
}
