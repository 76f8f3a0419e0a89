/**
 * The command line of claude, pure: which flags a turn needs. Nothing of a message is in it, nor the system prompt:
 * those come on stdin and in a file. `--allowedTools` is given once for each tool and never last before a word of its
 * own, because it swallows what follows it.
 */
import type { McpServer } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'

export interface ClaudeCommandOptions {
  readonly settings: Pick<CliSettings, 'bin' | 'args' | 'mode' | 'permission' | 'allowedTools' | 'maxTurns'>
  readonly model: string | undefined
  /** The session to go on from. */
  readonly sessionId: string | undefined
  readonly systemPromptFile: string | undefined
  readonly mcpConfigFile: string | undefined
  /** Servers of the platform's own, whose tools are allowed unasked. */
  readonly trustedServers: readonly string[]
}

export function claudeCommand(given: ClaudeCommandOptions): readonly [string, ...string[]] {
  const { settings } = given
  return [settings.bin, '-p', ...settings.args, ...formFlags(given), ...limitFlags(given), ...contextFlags(given)]
}

const STREAM_FLAGS = [
  '--verbose',
  '--input-format',
  'stream-json',
  '--output-format',
  'stream-json',
  '--include-partial-messages',
] as const

function formFlags({ settings, sessionId, systemPromptFile }: ClaudeCommandOptions): readonly string[] {
  const form = settings.mode === 'session' ? STREAM_FLAGS : (['--output-format', 'json'] as const)
  if (sessionId === undefined) return form
  // Without it a resumed session keeps the system prompt that it began with, whatever is given now.
  const snapshot = systemPromptFile === undefined ? [] : ['--system-prompt-snapshot', 'off']
  return [...form, '--resume', sessionId, ...snapshot]
}

function limitFlags({ settings, trustedServers }: ClaudeCommandOptions): readonly string[] {
  const { permission, maxTurns } = settings
  const turns = maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]
  if (permission === 'bypass') return [...turns, '--dangerously-skip-permissions']
  const tools = [...settings.allowedTools, ...trustedServers.map((name) => `mcp__${name}`)]
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
  const entries = servers.map(({ name, command, args, env }) => {
    // Otherwise its tools are hidden behind a search that a model may not think of.
    return [name, { type: 'stdio', command, args, env, alwaysLoad: true }] as const
  })
  return JSON.stringify({ mcpServers: Object.fromEntries(entries) })
}
