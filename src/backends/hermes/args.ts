/**
 * The command line of hermes, built from its reference. Pure. `chat --oneshot` reads the prompt from stdin and prints its
 * events as JSON lines. Not `-z`: that neither resumes a session nor asks before dangerous commands. `--in` keeps a
 * resumed session in this working folder; `--source tool` keeps it out of the user's own list.
 */
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export function hermesArgs(
  call: Pick<OneShotCall, 'settings' | 'model' | 'sessionId' | 'workingDir'>,
): readonly string[] {
  const { settings, model, sessionId, workingDir } = call
  const { permission, maxTurns, args } = settings
  return [
    ...['--in', workingDir, 'chat', '--oneshot', '--query-file', '-', '--format', 'stream-json', '--source', 'tool'],
    ...(sessionId === undefined ? [] : ['--resume', sessionId]),
    ...(model === undefined ? [] : ['--model', model]),
    ...(maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]),
    ...(permission === 'bypass' ? ['--yolo'] : []),
    ...args,
  ]
}
