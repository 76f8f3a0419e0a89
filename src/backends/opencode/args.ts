/**
 * The command lines of opencode, and the settings it takes from its environment. Pure. By default opencode runs every
 * tool without asking, so its permissions are always set: `OPENCODE_CONFIG_CONTENT` is merged over the user's own
 * config files and changes none of them.
 */
import type { McpServer } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'

/** These only read, inside the working folder. */
const HARMLESS_TOOLS = ['read', 'glob', 'grep', 'list', 'lsp', 'todoread', 'todowrite', 'skill'] as const

export function oneShotArgs(call: Pick<OneShotCall, 'settings' | 'model' | 'sessionId'>): readonly string[] {
  const { settings, model, sessionId } = call
  return [
    ...['run', '--format', 'json'],
    ...(settings.permission === 'bypass' ? ['--auto'] : []),
    ...(model === undefined ? [] : ['--model', model]),
    ...(sessionId === undefined ? [] : ['--session', sessionId, '--continue']),
    ...settings.args,
  ]
}

/** For a warm process; sessions, models and prompts come later over ACP. */
export function acpArgs({ args }: Pick<CliSettings, 'args'>): readonly string[] {
  return ['acp', ...args]
}

export interface OpencodeConfigOptions {
  readonly settings: Pick<CliSettings, 'permission' | 'allowedTools'>
  /** Servers of a one-shot, whose tools are allowed because no person is asked. A warm process gets servers per session. */
  readonly mcpServers: readonly McpServer[]
}

export function configContent({ settings, mcpServers }: OpencodeConfigOptions): string {
  const { permission, allowedTools } = settings
  const allowed = [...HARMLESS_TOOLS, ...allowedTools, ...mcpServers.map(({ name }) => `${name}_*`)]
  const mcp = mcpServers.map(({ name, command, args, env }) => [
    name,
    { type: 'local', command: [command, ...args], environment: env, enabled: true },
  ])
  return JSON.stringify({
    autoupdate: false,
    share: 'disabled',
    permission:
      permission === 'bypass'
        ? { '*': 'allow' }
        : { '*': 'ask', ...Object.fromEntries(allowed.map((tool) => [tool, 'allow'])) },
    ...(mcp.length > 0 && { mcp: Object.fromEntries(mcp) }),
  })
}
