/**
 * The command lines of gemini, pure. `stream-json` instead of `json`: it shows text, tools and errors as they come.
 * `--skip-trust` because a folder that the owner of the workspace chose is trusted by that choice; without it: exit 55.
 */
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

export function oneShotArgs(call: Pick<OneShotCall, 'settings' | 'model' | 'sessionId'>): readonly string[] {
  const { settings, model, sessionId } = call
  return [
    ...['--output-format', 'stream-json', '--skip-trust'],
    ...approval(call),
    ...(model === undefined ? [] : ['-m', model]),
    ...(sessionId === undefined ? [] : ['--resume', sessionId]),
    ...settings.args,
  ]
}

/** What a kept process is started with; sessions and prompts come later, by ACP. */
export function acpArgs(call: Pick<OneShotCall, 'settings' | 'model'>): readonly string[] {
  const { settings, model } = call
  const mode = settings.permission === 'bypass' ? 'yolo' : 'default'
  return [
    ...['--acp', '--skip-trust', '--approval-mode', mode],
    ...(model === undefined ? [] : ['-m', model]),
    ...settings.args,
  ]
}

/** In `default` without anybody to ask, gemini does not even offer the tools that would need asking. */
function approval({ settings: { permission, allowedTools } }: Pick<OneShotCall, 'settings'>): readonly string[] {
  if (permission === 'bypass') return ['--approval-mode', 'yolo']
  return ['--approval-mode', 'default', ...allowedTools.flatMap((tool) => ['--allowed-tools', tool])]
}
