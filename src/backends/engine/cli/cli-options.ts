/**
 * The options that backends of command-line agents share, read once when the backend is built. A `CliKind` describes the
 * agent and the options that it does not support. Invariant: an unsupported option that is set gives a warning with its
 * name; it is never ignored silently.
 */
import { join } from 'node:path'
import type { Log } from '../../../log.ts'
import { isJsonObject, parseJsonObject } from '../../../protocol/json.ts'
import type { McpStdioServer } from '../../backend.ts'
import { type BackendOptions, badOption, booleanOption, durationOption } from '../../options.ts'
import type { CliMode } from '../environment/agent-environment.ts'
import type { ProbeIsolation } from '../probe/scratch.ts'
import { splitWords } from './split-words.ts'

export type PermissionPolicy = 'ask' | 'allowed_tools' | 'bypass'

const OPTION_TEXTS = {
  bin: 'the program to run',
  args: 'more arguments for the program, split into words as a shell does',
  mode: 'session: keep the process between messages; oneshot: one process for each message',
  timeout: 'how long the agent may print nothing, or none (5m)',
  max_time: 'how long the whole turn may take, or none (none)',
  permission: 'ask: ask a person before a tool runs; allowed_tools: allow only those; bypass: allow every tool',
  allowed_tools: 'the tools that the agent may use without asking, comma-separated',
  max_turns: 'how many steps a turn may take',
  model: 'the model; overrides the model of the workspace',
  pass_meta: 'true: pass the ids of workspace and message in its environment (true)',
  mcp_servers: 'MCP servers for the agent, as JSON: {"name": {"command": "...", "args": [], "env": {}}}',
  auth_token_file: 'a file with the token of the agent, read if no environment variable has one',
  warm_max: 'how many processes are kept at most (4)',
  warm_idle: 'how long a process is kept without a message (10m)',
} as const

export type CliOption = keyof typeof OPTION_TEXTS

export interface CliKind {
  readonly backend: string
  /** The default of the option `bin`. */
  readonly bin: string
  /** The first is the default. */
  readonly modes: readonly [CliMode, ...CliMode[]]
  /** The modes in which the agent can ask a person before a tool runs. */
  readonly asksIn: readonly CliMode[]
  readonly maxTurnsDefault?: number
  /** Options of the list above that the program does not support. */
  readonly cannot: readonly CliOption[]
  /** How the program is isolated during a probe. */
  readonly isolation?: ProbeIsolation
}

export interface CliSettings {
  readonly bin: string
  readonly args: readonly string[]
  readonly mode: CliMode
  /** As its owner wrote it, for error messages. */
  readonly timeout: string
  readonly timeoutMs: number | undefined
  readonly maxTimeMs: number | undefined
  readonly permission: PermissionPolicy
  readonly allowedTools: readonly string[]
  readonly maxTurns: number | undefined
  /** Empty = the model of the turn, or else the program's default. */
  readonly model: string
  readonly passMeta: boolean
  readonly mcpServers: readonly McpStdioServer[]
  readonly authTokenFile: string
  readonly warmMax: number
  readonly warmIdleMs: number
}

/** How long a call of an MCP tool may run, for programs that can be told: a delegated task may take a day. */
export const MCP_CALL_MS_MAX = 24 * 3600_000

/** For `BackendDefinition.options`. `more` are options of this backend, or its own help for a shared option. */
export function cliOptions(
  { cannot }: Pick<CliKind, 'cannot'>,
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const shared = Object.entries(OPTION_TEXTS).filter(([key]) => !cannot.some((option) => option === key))
  return { ...Object.fromEntries(shared), ...more }
}

export function readCliSettings(options: BackendOptions, kind: CliKind, log: Log): CliSettings {
  const mode = oneOf(options, 'mode', kind.modes)
  const permission = readPermissionPolicy(options, kind, mode)
  const settings: CliSettings = {
    bin: options.get('bin', kind.bin),
    args: readArgs(options),
    mode,
    timeout: options.get('timeout', '5m'),
    timeoutMs: durationOption(options, 'timeout', '5m'),
    maxTimeMs: durationOption(options, 'max_time', 'none'),
    permission,
    allowedTools: splitTools(options.get('allowed_tools', '')),
    maxTurns: readCount(options, 'max_turns', kind.maxTurnsDefault),
    model: options.get('model', ''),
    passMeta: booleanOption(options, 'pass_meta', true),
    mcpServers: readMcpServers(options),
    authTokenFile: options.get('auth_token_file', defaultTokenFile(options)),
    warmMax: readCount(options, 'warm_max', 4) ?? 4,
    warmIdleMs: durationOption(options, 'warm_idle', '10m') ?? Number.POSITIVE_INFINITY,
  }
  for (const option of unsupportedOptions(options, kind, settings)) warnUnsupportedOption(log, kind.backend, option)
  return settings
}

export function warnUnsupportedOption(log: Log, backend: string, { option, why }: UnsupportedOption): void {
  log.warn({ backend, option }, `backend "${backend}" cannot honour option "${option}": ${why}`)
}

export interface UnsupportedOption {
  readonly option: string
  readonly why: string
}

const TEXT_IGNORES: readonly CliOption[] = [
  ...(['model', 'permission', 'allowed_tools', 'max_turns', 'mcp_servers', 'warm_max', 'warm_idle'] as const),
]

function unsupportedOptions(
  options: BackendOptions,
  { cannot, asksIn }: CliKind,
  settings: CliSettings,
): readonly UnsupportedOption[] {
  const isSet = (option: string) => options.get(option, '') !== ''
  if (settings.mode === 'text') {
    const why = 'in mode text the program gets only the words of args'
    return TEXT_IGNORES.filter(isSet).map((option) => ({ option, why }))
  }
  const found: UnsupportedOption[] = cannot
    .filter(isSet)
    .map((option) => ({ option, why: 'its program does not support it' }))
  if (options.get('permission', '') === 'ask' && !asksIn.includes(settings.mode)) {
    found.push({ option: 'permission', why: `it cannot ask in mode ${settings.mode}; allowed_tools is in force` })
  }
  if (settings.permission === 'bypass' && isSet('allowed_tools')) {
    found.push({ option: 'allowed_tools', why: 'permission is bypass, which allows every tool' })
  }
  if (settings.mode === 'oneshot') {
    const warm = ['warm_max', 'warm_idle'].filter((option) => isSet(option) && !cannot.some((one) => one === option))
    found.push(...warm.map((option) => ({ option, why: 'in mode oneshot nothing is kept warm' })))
  }
  return found
}

/** The default is `ask` if the backend can ask, else `allowed_tools`. `bypass` is never the default. */
function readPermissionPolicy(options: BackendOptions, { asksIn }: CliKind, mode: CliMode): PermissionPolicy {
  const fallback = asksIn.includes(mode) ? 'ask' : 'allowed_tools'
  const policy = oneOf(options, 'permission', [fallback, 'ask', 'allowed_tools', 'bypass'])
  return policy === 'ask' ? fallback : policy
}

function oneOf<T extends string>(options: BackendOptions, key: string, [fallback, ...rest]: readonly [T, ...T[]]): T {
  const text = options.get(key, fallback)
  const known = [fallback, ...rest].find((value) => value === text)
  if (known !== undefined) return known
  throw badOption(key, text, [...new Set([fallback, ...rest])].join(' or '))
}

function readArgs(options: BackendOptions): readonly string[] {
  const line = options.get('args', '')
  const words = splitWords(line)
  if (words !== undefined) return words
  throw badOption('args', line, 'a line of words: a quote is not closed, or nothing follows a backslash')
}

function readCount(options: BackendOptions, key: string, fallback: number | undefined): number | undefined {
  const text = options.get(key, fallback === undefined ? '' : String(fallback))
  if (text === '') return undefined
  const count = Number(text)
  if (/^[1-9]\d*$/.test(text) && Number.isSafeInteger(count)) return count
  throw badOption(key, text, 'a positive number')
}

/** Splits at commas outside parentheses: `Bash(git log:*, git diff:*)` is one tool. */
export function splitTools(text: string): readonly string[] {
  const tools: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (at < text.length && (character !== ',' || depth > 0)) continue
    tools.push(text.slice(start, at).trim())
    start = at + 1
  }
  return tools.filter((tool) => tool !== '')
}

function readMcpServers(options: BackendOptions): readonly McpStdioServer[] {
  const text = options.get('mcp_servers', '')
  if (text === '') return []
  // The error does not quote the value, because the environment of a server may contain secrets.
  const problem = badOption(
    'mcp_servers',
    '...',
    'JSON of the form {"name": {"command": "...", "args": [], "env": {}}}',
  )
  const value = parseJsonObject(text)
  if (value === undefined) throw problem
  return Object.entries(value).map(([name, server]) => {
    const read = toMcpServer(name, server)
    if (read === undefined) throw problem
    return read
  })
}

function toMcpServer(name: string, server: unknown): McpStdioServer | undefined {
  if (!isJsonObject(server) || name === '') return undefined
  const { command, args = [], env = {} } = server
  if (typeof command !== 'string' || command === '') return undefined
  if (!Array.isArray(args) || !args.every((word) => typeof word === 'string')) return undefined
  if (!isJsonObject(env)) return undefined
  const variables: Record<string, string> = {}
  for (const [key, entry] of Object.entries(env)) {
    if (typeof entry !== 'string') return undefined
    variables[key] = entry
  }
  return { name, command, args, env: variables }
}

/** `.auth-token` beside the workspace's config.yaml, if the platform gives that folder. */
function defaultTokenFile(options: BackendOptions): string {
  const folder = options.get('config_dir', '')
  return folder === '' ? '' : join(folder, '.auth-token')
}
