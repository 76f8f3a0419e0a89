/**
 * Every flag, environment variable and file key of the commands, as data: the one source for the parser, the help texts,
 * the defaults and docs/configuration.md. Imports nothing, because `molecule --help` loads it.
 */

export interface Setting {
  /** Long name of the flag without dashes; also the key in `molecule.yaml`. */
  readonly key: string
  readonly short?: string
  /** Name of the flag's value, as `<number>`; absent for a switch. */
  readonly value?: string
  readonly variable?: string
  /** As a user would type it. */
  readonly default?: string
  /** What help shows in place of a default that cannot be typed. */
  readonly defaultText?: string
  readonly text: string
  /** May hold a password, so no message shows its value. */
  readonly isSecret?: boolean
  /** Comma-separated; the flag may also be repeated. */
  readonly isList?: boolean
}

/** Where a command looks for the platform when nothing says where it is. */
export const DEFAULT_URL = 'http://localhost:8080'

/** Flags of every command; `up` uses only `--verbose`. */
export const GLOBAL_SETTINGS = [
  {
    key: 'output',
    short: '-o',
    value: '<format>',
    variable: 'MOLECULE_OUTPUT',
    default: 'table',
    text: 'output format: table, json or yaml',
  },
  {
    key: 'api-url',
    value: '<url>',
    variable: 'MOLECULE_API_URL',
    default: DEFAULT_URL,
    text: 'URL of the platform',
  },
  { key: 'verbose', short: '-v', text: 'show the stack of an error, and the whole log on stderr' },
] as const satisfies readonly Setting[]

/** For `up` and `connect`. */
const CGROUPS_SETTING = {
  key: 'cgroups',
  value: '<mode>',
  variable: 'MOLECULE_CGROUPS',
  default: 'auto',
  text: 'cgroups of agent processes: auto (each its own, where possible) or off',
} as const satisfies Setting

/** Flags of `molecule up`. Each but `data-dir` is also a key of `molecule.yaml`, which lies in that folder. */
export const PLATFORM_SETTINGS = [
  {
    key: 'port',
    value: '<number>',
    variable: 'MOLECULE_PORT',
    default: '8080',
    text: 'port to listen on, 0 for any free one',
  },
  {
    key: 'grpc-port',
    value: '<number>',
    variable: 'MOLECULE_GRPC_PORT',
    defaultText: 'no gRPC',
    text: 'port for A2A over gRPC, 0 for any free one',
  },
  {
    key: 'host',
    value: '<address>',
    variable: 'MOLECULE_HOST',
    default: '127.0.0.1',
    text: 'address to listen on; beyond loopback, put https in front',
  },
  {
    key: 'public-url',
    value: '<url>',
    variable: 'MOLECULE_PUBLIC_URL',
    default: '',
    defaultText: 'none',
    text: 'URL by which other machines reach the platform, as https://name; several comma-separated, links show the first',
    isList: true,
  },
  {
    key: 'trusted-proxy',
    value: '<range>',
    variable: 'MOLECULE_TRUSTED_PROXY',
    default: '',
    defaultText: 'none',
    text: 'address or range of a reverse proxy whose X-Forwarded-* headers count; several comma-separated',
    isList: true,
  },
  {
    key: 'data-dir',
    value: '<folder>',
    variable: 'MOLECULE_HOME',
    default: '~/.molecule',
    text: 'folder for all data of the platform',
  },
  {
    key: 'database',
    value: '<url>',
    variable: 'DATABASE_URL',
    defaultText: 'the embedded store',
    text: 'URL of a PostgreSQL database, postgres://...; put a URL with a password into the variable or the file',
    isSecret: true,
  },
  {
    key: 'drain',
    value: '<duration>',
    variable: 'MOLECULE_DRAIN',
    default: '10s',
    text: 'time that running turns have to finish at shutdown',
  },
  {
    key: 'max-block',
    value: '<duration>',
    variable: 'MOLECULE_MAX_BLOCK',
    default: '120s',
    text: 'time that a blocking call waits for its answer before it returns the unfinished task',
  },
  {
    key: 'allow-outbound',
    value: '<list>',
    variable: 'MOLECULE_ALLOW_OUTBOUND',
    default: '',
    defaultText: 'none',
    text: 'private hosts or ranges that webhooks may call, comma-separated',
  },
  {
    key: 'min-free-space',
    value: '<size>',
    variable: 'MOLECULE_MIN_FREE_SPACE',
    default: '500MiB',
    text: 'free disk space below which new messages are refused, 0 for no limit',
  },
  {
    key: 'voice-command',
    value: '<command>',
    variable: 'MOLECULE_VOICE_COMMAND',
    defaultText: 'none',
    text: 'shell command that prints the text of a voice note; its file is $1',
  },
  CGROUPS_SETTING,
  {
    key: 'log-level',
    value: '<level>',
    variable: 'MOLECULE_LOG_LEVEL',
    default: 'info',
    text: 'log level: debug, info, warn, error or silent',
  },
] as const satisfies readonly Setting[]

export type PlatformSettingKey = (typeof PLATFORM_SETTINGS)[number]['key']

/** Shared by the table below and by `bridge/connect.ts`. */
export const CONNECT_DEFAULTS = { dir: '.', concurrency: '1', drain: '10s', cgroups: CGROUPS_SETTING.default } as const

/** Flags of `molecule connect`. */
export const CONNECT_SETTINGS = [
  {
    key: 'backend',
    value: '<name>',
    default: 'claude-code',
    text: 'an adapter of the data folder, or the backend that runs the agent',
  },
  { key: 'backend-opt', value: '<key=value>', text: 'an option of the backend; may be repeated' },
  {
    key: 'token',
    value: '<token>',
    variable: 'MOLECULE_WORKSPACE_TOKEN',
    text: 'the token of the workspace',
    isSecret: true,
  },
  {
    key: 'token-file',
    value: '<file>',
    variable: 'MOLECULE_WORKSPACE_TOKEN_FILE',
    text: 'a file with the token, read again when it changes',
  },
  {
    key: 'dir',
    value: '<folder>',
    default: CONNECT_DEFAULTS.dir,
    defaultText: 'the current folder',
    text: 'folder the agent works in',
  },
  { key: 'dry-run', text: 'check the settings, the backend and the platform, and take no message' },
  {
    key: 'concurrency',
    value: '<number>',
    default: CONNECT_DEFAULTS.concurrency,
    text: 'how many messages to run at a time',
  },
  {
    key: 'drain',
    value: '<duration>',
    default: CONNECT_DEFAULTS.drain,
    text: 'time that running turns have to finish when the bridge stops',
  },
  CGROUPS_SETTING,
] as const satisfies readonly Setting[]

/** Of `molecule gateway`. */
const GATEWAY_VARIABLES: readonly { readonly name: string; readonly text: string }[] = [
  { name: 'DISCORD_BOT_TOKEN', text: '`gateway`, `channel add`: the token of the Discord bot' },
  { name: 'TELEGRAM_BOT_TOKEN', text: '`gateway`, `channel add`: the token of the Telegram bot' },
  { name: 'SLACK_BOT_TOKEN', text: '`gateway`, `channel add`: the bot token of the Slack app (`xoxb-...`)' },
  { name: 'SLACK_APP_TOKEN', text: '`gateway`, `channel add`: the app-level token of the Slack app (`xapp-...`)' },
  { name: 'MATRIX_ACCESS_TOKEN', text: '`gateway`, `channel add`: the access token of the Matrix bot' },
  { name: 'SOCKET_CHANNEL_TOKEN', text: '`gateway`, `channel add`: the token for a chat program of your own' },
  { name: 'AGENT_BACKEND', text: '`gateway`: the backend that answers (claude)' },
  { name: 'BACKEND_CLI_PATH', text: "`gateway`: the program of the backend (the backend's own)" },
  { name: 'BACKEND_MODEL', text: '`gateway`: the model that the agent uses' },
  { name: 'BACKEND_MAX_TURNS', text: '`gateway`: how many steps a turn may take (25)' },
  { name: 'ALLOWED_TOOLS', text: '`gateway`: tools that need no permission, comma-separated' },
  { name: 'WORKING_DIR', text: '`gateway`: folder the agent works in (the current one)' },
  { name: 'QUERY_TIMEOUT_MS', text: '`gateway`: how long the agent may be silent, in milliseconds (300000)' },
  {
    name: 'PERMISSION',
    text: '`gateway`: what the agent may do without asking: ask (the default), allowed_tools or bypass',
  },
  {
    name: 'OWNER',
    text: '`gateway`: ids of the owners of the bots, comma-separated: `discord:123`, or `123` where one bot is set',
  },
  ...['DISCORD', 'TELEGRAM', 'SLACK', 'MATRIX', 'SOCKET'].flatMap((service) => [
    { name: `${service}_ALLOWED_USERS`, text: '`gateway`: ids of people who need no pairing, comma-separated' },
    {
      name: `${service}_ALLOWED_CHANNELS`,
      text: '`gateway`: answer only in these channels and groups, comma-separated',
    },
    { name: `${service}_API_URL`, text: '`gateway`: another address of the service' },
  ]),
]

/** Variables that have no flag, or that a flag's row above does not tell enough about. */
export const VARIABLES: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: 'MOLECULE_ADMIN_TOKEN',
    text: 'the admin token: `up` takes it and writes it to the file `admin-token`; other commands send it',
  },
  {
    name: 'MOLECULE_WORKSPACE_TOKEN',
    text: 'the token of a workspace or of one conversation; a command sends it in place of the admin token',
  },
  {
    name: 'MOLECULE_WORKSPACE_ID',
    text: 'the workspace that a process works for; `a2a` and `molecule status` read it',
  },
  ...GATEWAY_VARIABLES,
  { name: 'NO_COLOR', text: 'any value turns off styles in `molecule chat`' },
  { name: 'TERM', text: '`dumb` turns off styles, the status line and pastes of several lines in `molecule chat`' },
  { name: 'PATH', text: 'folders in which the programs of the agents are searched' },
  { name: 'HOME', text: 'folder in which `molecule doctor` looks for the log-ins of the agents' },
  ...['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'].map((name) => ({
    name,
    text: 'set where there is a screen, so that `molecule open` opens a browser',
  })),
  { name: 'SSH_CONNECTION', text: 'set over SSH, where `molecule open` prints the link' },
  {
    name: 'MOLECULE_CRASH_AT',
    text: 'for crash tests only: `<checkpoint>[:<n>]` kills the platform when it passes the checkpoint for the n-th time',
  },
]

/** The flag as the parser wants it: `-o, --output <format>`. */
export function flagsOf({ key, short, value }: Setting): string {
  return `${short === undefined ? '' : `${short}, `}--${key}${value === undefined ? '' : ` ${value}`}`
}

/** The text with default and variable: `port to listen on, 0 for any free one (8080; MOLECULE_PORT)`. */
export function helpOf(setting: Setting): string {
  const details = [defaultOf(setting), setting.variable].filter((detail) => detail !== undefined)
  return details.length === 0 ? setting.text : `${setting.text} (${details.join('; ')})`
}

export const defaultOf = (setting: Setting): string | undefined => setting.defaultText ?? setting.default
