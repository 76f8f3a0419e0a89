/**
 * The command line of openclaw. Pure. `agent --local`, because `agent exec` keeps no session. The prompt is in a file,
 * because openclaw does not read stdin. The caller names the session: one per conversation.
 */
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export interface OpenclawArgsOptions
  extends Pick<OneShotCall, 'settings' | 'model' | 'sessionId' | 'promptFile' | 'newSessionId'> {
  readonly agent: string
}

export function openclawArgs(call: OpenclawArgsOptions): readonly string[] {
  const { settings, model, sessionId, promptFile, newSessionId, agent } = call
  return [
    ...['agent', '--local', '--agent', agent, '--session-id', sessionId ?? newSessionId],
    ...['--message-file', promptFile, '--json'],
    ...(model === undefined ? [] : ['--model', model]),
    ...settings.args,
  ]
}
