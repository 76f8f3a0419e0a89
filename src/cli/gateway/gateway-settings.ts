/**
 * The settings of `molecule gateway`, from environment variables alone. A number that cannot be used warns and falls back to
 * its default; a token that is missing is an error that says how to get one.
 */
import { resolve } from 'node:path'
import type { BackendDefinition } from '../../backends/backend.ts'
import { builtinBackends } from '../../backends/backends.ts'
import type { ChannelKind } from '../../doors/chat/channel.ts'
import { MoleculeError } from '../../errors.ts'
import type { Environment } from '../terminal/terminal.ts'
import { readOwners } from './gateway-owners.ts'

export interface GatewayChannel {
  readonly kind: ChannelKind
  readonly token: string
  /** By the names of the kind's settings; secrets too. */
  readonly settings: Readonly<Record<string, string>>
  readonly apiUrl?: string
  readonly allowedPeople?: readonly string[]
  readonly allowedPlaces?: readonly string[]
  /** The ids of people whom `OWNER` makes owners. */
  readonly owners: readonly string[]
}

export interface GatewaySettings {
  /** As it is set; undefined = the default backend. */
  readonly backend: string | undefined
  readonly workingDir: string
  /** What the variables of the agent say, by name; without those that are not set and have no default. */
  readonly agent: Readonly<Partial<Record<AgentVariable, string>>>
  /** The variables of the agent that are set. */
  readonly given: readonly AgentVariable[]
  readonly channels: readonly GatewayChannel[]
}

/** The options of a backend that a variable may set: the first one that the backend has. */
const AGENT_VARIABLES = {
  BACKEND_CLI_PATH: ['bin', 'cmd'],
  BACKEND_MODEL: ['model'],
  BACKEND_MAX_TURNS: ['max_turns'],
  ALLOWED_TOOLS: ['allowed_tools'],
  QUERY_TIMEOUT_MS: ['timeout'],
  PERMISSION: ['permission'],
} as const

type AgentVariable = keyof typeof AGENT_VARIABLES

const AGENT_VARIABLE_NAMES = Object.keys(AGENT_VARIABLES) as AgentVariable[]

const MAX_TURNS_DEFAULT = 25
const TIMEOUT_MS_DEFAULT = 300_000

export interface GatewayInput {
  readonly env: Environment
  readonly kinds: readonly ChannelKind[]
  readonly warn: (sentence: string) => void
}

export function readGatewaySettings({ env, kinds, warn }: GatewayInput): GatewaySettings {
  // An empty variable counts as unset: compose files write "not given" that way.
  const read = (name: string) => env[name]?.trim() || undefined
  const readNumber = (name: string, fallback: number) => {
    const text = read(name)
    if (text === undefined) return fallback
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
    warn(`${name} must be a whole number above 0, not ${JSON.stringify(text)}; ${fallback} is used`)
    return fallback
  }
  const given = AGENT_VARIABLE_NAMES.filter((name) => read(name) !== undefined)
  return {
    backend: read('AGENT_BACKEND'),
    workingDir: resolve(read('WORKING_DIR') ?? '.'),
    agent: {
      ...Object.fromEntries(given.map((name) => [name, read(name)])),
      BACKEND_MAX_TURNS: String(readNumber('BACKEND_MAX_TURNS', MAX_TURNS_DEFAULT)),
      QUERY_TIMEOUT_MS: `${readNumber('QUERY_TIMEOUT_MS', TIMEOUT_MS_DEFAULT)}ms`,
    },
    given,
    channels: readChannels(kinds, read, warn),
  }
}

/** What the variables mean for one backend. */
export interface AgentSettings {
  /** By option of the backend. Null: no variable sets it, so it has its default, whatever an earlier start has stored. */
  readonly options: Readonly<Record<string, string | null>>
  /** Variables that are set and that the backend does not support. */
  readonly ignored: readonly AgentVariable[]
}

export function agentSettingsFor(definition: BackendDefinition, { agent, given }: GatewaySettings): AgentSettings {
  // An adapter gets the model with each turn and need not have an option for it.
  const known = builtinBackends.includes(definition) ? definition.options : { model: '', ...definition.options }
  const ofBackend = AGENT_VARIABLE_NAMES.map((name) => ({
    name,
    option: AGENT_VARIABLES[name].find((option) => Object.hasOwn(known, option)),
  }))
  const governed = AGENT_VARIABLE_NAMES.flatMap((name) => AGENT_VARIABLES[name])
  const set = ofBackend.flatMap(({ name, option }) => (option === undefined ? [] : [[option, agent[name] ?? null]]))
  return {
    options: { ...Object.fromEntries(governed.map((option) => [option, null])), ...Object.fromEntries(set) },
    ignored: ofBackend.flatMap(({ name, option }) => (option === undefined && given.includes(name) ? [name] : [])),
  }
}

/** The variable that sets an option; undefined if there is none. */
export const variableOfOption = (option: string): AgentVariable | undefined =>
  AGENT_VARIABLE_NAMES.find((name) => AGENT_VARIABLES[name].some((known) => known === option))

/** The option that names the program of a backend; undefined for a backend without a program. */
export const programOption = ({ options }: BackendDefinition): string | undefined =>
  AGENT_VARIABLES.BACKEND_CLI_PATH.find((option) => Object.hasOwn(options, option))

function readChannels(
  kinds: readonly ChannelKind[],
  read: (name: string) => string | undefined,
  warn: GatewayInput['warn'],
): GatewayChannel[] {
  const readList = (name: string) =>
    read(name)
      ?.split(',')
      .map((id) => id.trim())
      .filter((id) => id !== '')
  const channels = kinds.flatMap((kind): Omit<GatewayChannel, 'owners'>[] => {
    const token = read(kind.tokenVariable)
    if (token === undefined) return []
    const prefix = kind.kind.toUpperCase()
    const [apiUrl, people, places] = [
      read(`${prefix}_API_URL`),
      readList(`${prefix}_ALLOWED_USERS`),
      readList(`${prefix}_ALLOWED_CHANNELS`),
    ]
    return [
      {
        kind,
        token,
        settings: readKindSettings(kind, read),
        apiUrl,
        allowedPeople: people,
        allowedPlaces: places,
      },
    ]
  })
  if (channels.length > 0) {
    const set = channels.map(({ kind }) => kind.kind)
    const owners = readOwners(readList('OWNER') ?? [], { known: kinds.map(({ kind }) => kind), set, warn })
    return channels.map((channel) => ({ ...channel, owners: owners.get(channel.kind.kind) ?? [] }))
  }
  const [first] = kinds
  const others = kinds.slice(1).map(({ tokenVariable }) => tokenVariable)
  const steps = first === undefined ? '' : `: ${first.tokenSteps.join(' ')}`
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  throw new MoleculeError('bad_config', `the gateway needs the token of a bot in ${first?.tokenVariable}${or}${steps}`)
}

function readKindSettings(
  { kind, settings = [] }: ChannelKind,
  read: (name: string) => string | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    settings.flatMap(({ name, variable, summary, isRequired }) => {
      const value = read(variable)
      if (value === undefined && isRequired)
        throw new MoleculeError('bad_config', `the ${kind} bot also needs ${variable}: ${summary}`)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
