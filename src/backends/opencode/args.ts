/**
 * The command lines of opencode, and the settings it takes from its environment. Pure. By default opencode runs every
 * tool without asking, so its permissions are always set: `OPENCODE_CONFIG_CONTENT` is merged over the user's own
 * config files and changes none of them.
 */
import type { McpServer } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import type { OneShotCall } from '../engine/cli/one-shot-agent.ts'
import { splitEntry } from '../engine/tool-use.ts'

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
  const allowed = [...HARMLESS_TOOLS, ...mcpServers.map(({ name }) => `${name}_*`)]
  const mcp = mcpServers.map((server) => [server.name, { ...mcpEntry(server), enabled: true }])
  return JSON.stringify({
    autoupdate: false,
    share: 'disabled',
    permission:
      permission === 'bypass'
        ? { '*': 'allow' }
        : { '*': 'ask', ...Object.fromEntries(allowed.map((tool) => [tool, 'allow'])), ...rulesOf(allowedTools) },
    ...(mcp.length > 0 && { mcp: Object.fromEntries(mcp) }),
  })
}

function mcpEntry(server: McpServer): object {
  if ('url' in server) {
    // opencode puts the value of the variable there. Progress of a call restarts its limit of 60 s.
    return { type: 'remote', url: server.url, headers: { Authorization: `Bearer {env:${server.tokenVariable}}` } }
  }
  const { command, args, env } = server
  return { type: 'local', command: [command, ...args], environment: env }
}

/** opencode has one rule for all tools that write files. */
const RULE_NAMES: Readonly<Record<string, string>> = {
  write: 'edit',
  patch: 'edit',
  multiedit: 'edit',
  apply_patch: 'edit',
}

/** `bash` allows the tool, `bash(git status)` one command. The last rule that matches counts, so `*` comes first. */
function rulesOf(allowedTools: readonly string[]): Record<string, string | Record<string, string>> {
  const rules: Record<string, string | Record<string, string>> = {}
  for (const entry of allowedTools) {
    const { tool, subject } = splitEntry(entry) ?? { tool: entry, subject: undefined }
    const name = RULE_NAMES[tool] ?? tool
    const rule = rules[name] ?? { '*': 'ask' }
    if (subject === undefined) rules[name] = 'allow'
    else if (typeof rule === 'object') rules[name] = { ...rule, [subject]: 'allow' }
  }
  return rules
}
