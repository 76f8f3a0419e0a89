/**
 * The command lines of codex: `codex exec` for one message, `codex app-server` for a warm process. Pure. They contain no
 * message and no secret: only the names of an MCP server's variables. Plugins are off, because with them codex stays for
 * five seconds after its answer.
 */
import { MoleculeError } from '../../errors.ts'
import type { SpawnOptions } from '../../process/processes.ts'
import type { McpHttpServer, McpServer } from '../backend.ts'
import { type CliSettings, MCP_CALL_MS_MAX } from '../engine/cli/cli-options.ts'

type Command = SpawnOptions['command']
type CommandSettings = Pick<CliSettings, 'bin' | 'args' | 'permission'>

export interface ExecCommandOptions {
  readonly settings: CommandSettings
  readonly workingDir: string
  readonly model: string | undefined
  /** The thread to resume. */
  readonly thread: string | undefined
  readonly systemPrompt: string
  readonly mcpServers: readonly CodexMcpServer[]
}

export type CodexMcpServer = McpServer & {
  /** The tools of this server need no permission. */
  readonly trusted: boolean
}

/** A longer system prompt is refused: Linux limits an argument to 128 KiB. */
const INSTRUCTION_BYTES_MAX = 96 * 1024

export function execCommand(options: ExecCommandOptions): Command {
  const { settings, workingDir, model, thread } = options
  return [
    settings.bin,
    'exec',
    '--json',
    '--skip-git-repo-check',
    ...['--disable', 'plugins'],
    ...['-C', workingDir],
    ...permissionFlags(settings.permission),
    ...(model === undefined ? [] : ['-m', model]),
    ...instructionFlags(options),
    ...options.mcpServers.flatMap(mcpFlags),
    ...settings.args,
    ...(thread === undefined ? [] : ['resume', thread]),
    // codex reads the prompt from stdin.
    '-',
  ]
}

/** With `ownKey` the process gets a key of its own, and the user's login is neither used nor changed. */
export function appServerCommand({ bin, args }: CommandSettings, ownKey = false): Command {
  const store = ownKey ? ['-c', 'cli_auth_credentials_store="ephemeral"'] : []
  return [bin, '--disable', 'plugins', ...store, ...args, 'app-server']
}

/** A one-shot cannot ask. Without bypass the sandbox limits what it can do. */
function permissionFlags(permission: CommandSettings['permission']): readonly string[] {
  return permission === 'bypass' ? ['--dangerously-bypass-approvals-and-sandbox'] : ['-s', 'workspace-write']
}

/** A resumed thread keeps the system prompt it began with and ignores this one. */
function instructionFlags({ systemPrompt, thread }: ExecCommandOptions): readonly string[] {
  if (systemPrompt === '' || thread !== undefined) return []
  if (Buffer.byteLength(systemPrompt) > INSTRUCTION_BYTES_MAX) {
    throw new MoleculeError(
      'bad_config',
      `the system prompt is larger than ${INSTRUCTION_BYTES_MAX} bytes, which codex accepts in mode session only`,
    )
  }
  return ['-c', `developer_instructions=${tomlString(systemPrompt)}`]
}

function mcpFlags(server: CodexMcpServer): readonly string[] {
  const address =
    'url' in server
      ? httpAddress(server)
      : // Names only: the values are secrets, and every user of the machine can read a command line.
        { command: server.command, args: server.args, env_vars: Object.keys(server.env) }
  const fields = Object.entries({ ...address, ...sharedFields(server) }).map(([key, value]) => `${key}=${toml(value)}`)
  return ['-c', `mcp_servers.${checkServerName(server.name)}={${fields.join(',')}}`]
}

const httpAddress = ({ url, tokenVariable }: McpHttpServer) => ({
  url,
  bearer_token_env_var: tokenVariable,
  tool_timeout_sec: MCP_CALL_MS_MAX / 1000,
})

const sharedFields = ({ trusted }: CodexMcpServer) => ({
  // Without this codex does not wait for the server, and the model may not see its tools.
  required: true,
  ...(trusted && { default_tools_approval_mode: 'approve' }),
})

function toml(value: string | number | boolean | readonly string[]): string {
  if (typeof value === 'string') return tomlString(value)
  return typeof value === 'object' ? `[${value.map(tomlString).join(',')}]` : String(value)
}

/** The variables that `env_vars` names, for the environment of codex. Two servers cannot have different values of one. */
export function mcpVariables(servers: readonly CodexMcpServer[]): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const server of servers) {
    if ('url' in server) continue
    const { name, env } = server
    for (const [key, value] of Object.entries(env)) {
      if (variables[key] !== undefined && variables[key] !== value) {
        const message = `MCP server "${name}" sets ${key} to another value than a server before it, which codex can do in mode session only`
        throw new MoleculeError('bad_config', message)
      }
      variables[key] = value
    }
  }
  return variables
}

/** For `config` of a thread. It goes over stdin, so it may contain the values of the environment. */
export function mcpConfig(servers: readonly CodexMcpServer[]): Record<string, unknown> {
  const entries = servers.map((server) => {
    const address =
      'url' in server ? httpAddress(server) : { command: server.command, args: server.args, env: server.env }
    return [checkServerName(server.name), { ...address, ...sharedFields(server) }]
  })
  return entries.length === 0 ? {} : { mcp_servers: Object.fromEntries(entries) }
}

/** Codex splits the name of a setting at its dots, even within quotes. */
function checkServerName(name: string): string {
  if (/^[\w-]+$/.test(name)) return name
  throw new MoleculeError(
    'bad_config',
    `MCP server ${JSON.stringify(name)}: codex accepts letters, digits, _ and - only`,
  )
}

/** A JSON string is a TOML string, except for DEL and unpaired surrogates, which TOML refuses. */
export function tomlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007f')
}
