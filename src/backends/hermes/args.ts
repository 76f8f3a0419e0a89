/**
 * The command lines of hermes, and the prompt of a warm one. Pure. `chat --oneshot` reads the prompt from stdin and prints
 * its events as JSON lines. Not `-z`: that neither resumes a session nor asks before dangerous commands. `--in` keeps a
 * resumed session in this working folder; `--source tool` keeps it out of the user's own list.
 */
import type { CliSettings } from '../engine/cli/cli-options.ts'
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export function oneShotArgs(
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

/** For a warm process; sessions, models and prompts come later over ACP. */
export function acpArgs({ args }: Pick<CliSettings, 'args'>): readonly string[] {
  return ['acp', ...args]
}

/**
 * A caller could change the model or clear the session: hermes takes a prompt that begins with `/` for a command of its
 * user. With a line before it, it is a message.
 */
export function acpPrompt(prompt: string): string {
  return prompt.trimStart().startsWith('/') ? `The message is:\n${prompt}` : prompt
}
