/**
 * The command lines of codex, pure: `codex exec` for one message, `codex app-server` for a process that stays. Nothing
 * of a message is in them, and no secret: the environment of MCP servers is named, not written. Plugins are off,
 * because with them codex stays for five seconds after it has answered.
 */
import { MoleculeError } from '../../errors.ts'
import type { McpServer } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'

type Command = readonly [string, ...string[]]
type CommandSettings = Pick<CliSettings, 'bin' | 'args' | 'permission'>

export interface ExecCommandOptions {
  readonly settings: CommandSettings
  readonly workingDir: string
  readonly model: string | undefined
  /** The thread to go on from. */
  readonly thread: string | undefined
  readonly systemPrompt: string
  readonly mcpServers: readonly CodexMcpServer[]
}

export interface CodexMcpServer extends McpServer {
  /** The platform's own: its tools are used unasked. */
  readonly trusted: boolean
}

/** A system prompt on a command line has a limit of the system's: 128 KiB an argument. */
const INSTRUCTION_BYTES_MAX = 96 * 1024

export function execCommand(given: ExecCommandOptions): Command {
  const { settings, workingDir, model, thread } = given
  return [
    settings.bin,
    'exec',
    '--json',
    '--skip-git-repo-check',
    ...['--disable', 'plugins'],
    ...['-C', workingDir],
    ...permissionFlags(settings.permission),
    ...(model === undefined ? [] : ['-m', model]),
    ...instructionFlags(given),
    ...given.mcpServers.flatMap(mcpFlags),
    ...settings.args,
    ...(thread === undefined ? [] : ['resume', thread]),
    // The prompt comes on stdin.
    '-',
  ]
}

/** With `ownKey` it is told a key for this process alone: neither the user's log-in is used then, nor changed. */
export function appServerCommand({ bin, args }: CommandSettings, ownKey = false): Command {
  const store = ownKey ? ['-c', 'cli_auth_credentials_store="ephemeral"'] : []
  return [bin, '--disable', 'plugins', ...store, ...args, 'app-server']
}

/** Without bypass there is nobody to ask in a one-shot: the sandbox is what holds it. */
function permissionFlags(permission: CommandSettings['permission']): readonly string[] {
  return permission === 'bypass' ? ['--dangerously-bypass-approvals-and-sandbox'] : ['-s', 'workspace-write']
}

/** A resumed thread keeps what it was begun with, whatever is said here. */
function instructionFlags({ systemPrompt, thread }: ExecCommandOptions): readonly string[] {
  if (systemPrompt === '' || thread !== undefined) return []
  if (Buffer.byteLength(systemPrompt) > INSTRUCTION_BYTES_MAX) {
    throw new MoleculeError(
      'bad_config',
      `the system prompt is larger than ${INSTRUCTION_BYTES_MAX} bytes, which codex takes in mode session only`,
    )
  }
  return ['-c', `developer_instructions=${tomlString(systemPrompt)}`]
}

function mcpFlags(server: CodexMcpServer): readonly string[] {
  const { name, command, args, env, trusted } = server
  const fields = [
    `command=${tomlString(command)}`,
    `args=[${args.map(tomlString).join(',')}]`,
    // Its values are secrets, and a command line is for everybody to read: codex passes on what it is named.
    `env_vars=[${Object.keys(env).map(tomlString).join(',')}]`,
    // Without it codex does not wait for the server, and the model may not see its tools.
    'required=true',
    ...(trusted ? ['default_tools_approval_mode="approve"'] : []),
  ]
  return ['-c', `mcp_servers.${checkServerName(name)}={${fields.join(',')}}`]
}

/** What the process needs in its environment for `env_vars`; two servers cannot want different things of one name. */
export function mcpVariables(servers: readonly CodexMcpServer[]): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const { name, env } of servers) {
    for (const [key, value] of Object.entries(env)) {
      if (variables[key] !== undefined && variables[key] !== value) {
        const message = `MCP server "${name}" wants another ${key} than one before it, which codex can do in mode session only`
        throw new MoleculeError('bad_config', message)
      }
      variables[key] = value
    }
  }
  return variables
}

/** For `config` of a thread: said over stdin, so that the environment may be written out. */
export function mcpConfig(servers: readonly CodexMcpServer[]): Record<string, unknown> {
  const entries = servers.map(({ name, command, args, env, trusted }) => [
    checkServerName(name),
    { command, args, env, required: true, ...(trusted && { default_tools_approval_mode: 'approve' }) },
  ])
  return entries.length === 0 ? {} : { mcp_servers: Object.fromEntries(entries) }
}

/** Codex splits the name of a setting at its dots, whatever quotes are around them. */
function checkServerName(name: string): string {
  if (/^[\w-]+$/.test(name)) return name
  throw new MoleculeError('bad_config', `MCP server ${JSON.stringify(name)}: codex takes letters, digits, _ and - only`)
}

/** JSON's escapes are TOML's too, but for DEL and half characters, which TOML refuses. */
export function tomlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007f')
}
