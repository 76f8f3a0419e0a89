/**
 * The command lines of gemini. Pure. `stream-json` and not `json`, because it reports text, tools and errors while they
 * happen. `--skip-trust`, because the owner trusts the folder by choosing it; without the flag gemini exits with 55.
 */
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export function oneShotArgs(call: Pick<OneShotCall, 'settings' | 'model' | 'sessionId'>): readonly string[] {
  const { settings, model, sessionId } = call
  return [
    ...['--output-format', 'stream-json', '--skip-trust'],
    ...approvalFlags(settings),
    ...(model === undefined ? [] : ['-m', model]),
    ...(sessionId === undefined ? [] : ['--resume', sessionId]),
    ...settings.args,
  ]
}

/** For a warm process; sessions and prompts come later over ACP. */
export function acpArgs({ settings, model }: Pick<OneShotCall, 'settings' | 'model'>): readonly string[] {
  const mode = settings.permission === 'bypass' ? 'yolo' : 'default'
  return [
    ...['--acp', '--skip-trust', '--approval-mode', mode],
    ...(model === undefined ? [] : ['-m', model]),
    ...settings.args,
  ]
}

/** A one-shot in mode `default` does not even offer the model a tool that needs permission. */
function approvalFlags({ permission, allowedTools }: OneShotCall['settings']): readonly string[] {
  if (permission === 'bypass') return ['--approval-mode', 'yolo']
  return ['--approval-mode', 'default', ...allowedTools.flatMap((tool) => ['--allowed-tools', tool])]
}
