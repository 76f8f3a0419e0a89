/**
 * The command line of openclaw. Pure. `agent` and not `agent exec`, which keeps no session. The prompt is in a file,
 * because openclaw does not read stdin. Without `--local` the gateway runs the turn.
 */
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export interface OpenclawArgsOptions
  extends Pick<OneShotCall, 'settings' | 'model' | 'sessionId' | 'promptFile' | 'newSessionId'> {
  readonly agent: string
  readonly isLocal: boolean
  /** openclaw's own limit of the turn; 0 = none. */
  readonly timeoutSeconds: number
}

export function openclawArgs(call: OpenclawArgsOptions): readonly string[] {
  const { settings, model, sessionId, promptFile, newSessionId, agent, isLocal, timeoutSeconds } = call
  return [
    ...[
      'agent',
      ...(isLocal ? ['--local'] : []),
      '--agent',
      agent,
      '--session-key',
      sessionKeyOf(agent, sessionId ?? newSessionId),
    ],
    ...['--message-file', promptFile, '--json', '--timeout', String(timeoutSeconds)],
    ...(model === undefined ? [] : ['--model', model]),
    ...settings.args,
  ]
}

/**
 * The caller names the session, one per conversation. It is the key that `--session-id ID` gives a session. Not that
 * option itself: it begins a session anew that the gateway's HTTP endpoint began under the same key (seen with 2026.9.6).
 */
export const sessionKeyOf = (agent: string, sessionId: string): string => `agent:${agent}:explicit:${sessionId}`

/** The id in a key of ours; undefined for another key. */
export function sessionIdIn(key: string): string | undefined {
  return /^agent:[^:]+:explicit:(.+)$/.exec(key)?.[1]
}

/** Molecule stops a turn first; this is later, for a turn of a gateway that Molecule can no longer stop. */
const MARGIN_SECONDS = 30

/** Without it openclaw ends every turn after 600 s. */
export function timeoutSecondsOf(limitsMs: readonly (number | undefined)[]): number {
  const known = limitsMs.filter((ms) => ms !== undefined)
  return known.length === 0 ? 0 : Math.ceil(Math.min(...known) / 1000) + MARGIN_SECONDS
}
