/**
 * The command line of claude. Pure. It contains neither the message nor the system prompt: they come on stdin and in a
 * file. `--allowedTools` is given once per tool and always before another flag, because it takes all words after it.
 */
import type { McpServer } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import { splitEntry } from '../engine/tool-use.ts'

export interface ClaudeCommandOptions {
  readonly settings: Pick<CliSettings, 'bin' | 'args' | 'mode' | 'permission' | 'allowedTools' | 'maxTurns'>
  readonly model: string | undefined
  /** The session to resume. */
  readonly sessionId: string | undefined
  readonly systemPromptFile: string | undefined
  readonly mcpConfigFile: string | undefined
  /** MCP servers whose tools need no permission. */
  readonly trustedServers: readonly string[]
  /** Options that this claude does not know (`program.ts`). */
  readonly unknownOptions: ReadonlySet<string>
}

export function claudeCommand(options: ClaudeCommandOptions): readonly [string, ...string[]] {
  const { bin, args } = options.settings
  return [bin, '-p', ...args, ...formatFlags(options), ...permissionFlags(options), ...contextFlags(options)]
}

const STREAM_FLAGS = ['--verbose', '--input-format', 'stream-json', '--output-format', 'stream-json'] as const

function formatFlags({
  settings,
  sessionId,
  systemPromptFile,
  unknownOptions,
}: ClaudeCommandOptions): readonly string[] {
  const known = (option: string, ...values: string[]) => (unknownOptions.has(option) ? [] : [option, ...values])
  const format =
    settings.mode === 'session'
      ? [...STREAM_FLAGS, ...known('--include-partial-messages')]
      : (['--output-format', 'json'] as const)
  if (sessionId === undefined) return format
  // Without this option a resumed session keeps the system prompt that it began with.
  const snapshot = systemPromptFile === undefined ? [] : known('--system-prompt-snapshot', 'off')
  return [...format, '--resume', sessionId, ...snapshot]
}

function permissionFlags({ settings, trustedServers }: ClaudeCommandOptions): readonly string[] {
  const { permission, maxTurns } = settings
  const turns = maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]
  if (permission === 'bypass') return [...turns, '--dangerously-skip-permissions']
  // claude would take an input as JSON for a pattern of paths; permission.ts compares it.
  const named = settings.allowedTools.filter((entry) => !splitEntry(entry)?.subject.startsWith('{'))
  const tools = [...named, ...trustedServers.map((name) => `mcp__${name}`)]
  const allowed = tools.flatMap((tool) => ['--allowedTools', tool])
  const asking = permission === 'ask' ? ['--permission-prompt-tool', 'stdio'] : []
  return [...turns, ...allowed, '--permission-mode', permission === 'ask' ? 'default' : 'dontAsk', ...asking]
}

function contextFlags({ model, systemPromptFile, mcpConfigFile }: ClaudeCommandOptions): readonly string[] {
  return [
    ...(model === undefined ? [] : ['--model', model]),
    ...(systemPromptFile === undefined ? [] : ['--append-system-prompt-file', systemPromptFile]),
    ...(mcpConfigFile === undefined ? [] : ['--mcp-config', mcpConfigFile]),
  ]
}

/** The content of the file for `--mcp-config`. */
export function mcpConfig(servers: readonly McpServer[]): string {
  // Without `alwaysLoad` claude hides the tools behind a search that a model may not use.
  const entries = servers.map((server) => [server.name, { ...mcpEntry(server), alwaysLoad: true }] as const)
  return JSON.stringify({ mcpServers: Object.fromEntries(entries) })
}

function mcpEntry(server: McpServer): object {
  if ('url' in server) {
    // claude puts the value of the variable there.
    return { type: 'http', url: server.url, headers: { Authorization: `Bearer \${${server.tokenVariable}}` } }
  }
  const { command, args, env } = server
  return { type: 'stdio', command, args, env }
}
