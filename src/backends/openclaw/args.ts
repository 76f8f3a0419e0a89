/**
 * The command line of openclaw, pure. `agent --local` because only that keeps a session (`agent exec` starts each time
 * afresh), and the prompt in a file because that is the only way but the command line: it reads no stdin. The session
 * is ours to name: one for each conversation.
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
