/**
 * The settings of `molecule gateway`, from environment variables alone. A number that cannot be used warns and falls back to
 * its default; a token that is missing is an error that says how to get one.
 */
import { resolve } from 'node:path'
import { resolveBackendName } from '../../backends/backends.ts'
import type { ChannelKind } from '../../doors/chat/channel.ts'
import { MoleculeError } from '../../errors.ts'
import type { Environment } from '../terminal/terminal.ts'

export interface GatewayChannel {
  readonly kind: ChannelKind
  readonly token: string
  readonly apiUrl?: string
  readonly allowedPeople?: readonly string[]
  readonly allowedPlaces?: readonly string[]
}

export interface GatewaySettings {
  readonly backend: string
  readonly model?: string
  readonly permission?: string
  readonly workingDir: string
  /** Options of the backend; those that it does not have are left out by the caller. */
  readonly options: Readonly<Record<string, string>>
  readonly channels: readonly GatewayChannel[]
}

const MAX_TURNS_DEFAULT = 25
const TIMEOUT_MS_DEFAULT = 300_000

export interface GatewayInput {
  readonly env: Environment
  readonly kinds: readonly ChannelKind[]
  readonly backends: readonly string[]
  readonly warn: (sentence: string) => void
}

export function readGatewaySettings({ env, kinds, backends, warn }: GatewayInput): GatewaySettings {
  // An empty variable counts as unset: compose files write "not given" that way.
  const read = (name: string) => env[name]?.trim() || undefined
  const readNumber = (name: string, fallback: number) => {
    const text = read(name)
    if (text === undefined) return fallback
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
    warn(`${name} must be a whole number above 0, not ${JSON.stringify(text)}; ${fallback} is used`)
    return fallback
  }
  const backend = resolveBackendName(read('AGENT_BACKEND'), backends)
  const [bin, model, permission, allowedTools] = [
    read('BACKEND_CLI_PATH'),
    read('BACKEND_MODEL'),
    read('PERMISSION'),
    read('ALLOWED_TOOLS'),
  ]
  return {
    backend,
    ...(model !== undefined && { model }),
    ...(permission !== undefined && { permission }),
    workingDir: resolve(read('WORKING_DIR') ?? '.'),
    options: {
      ...(bin !== undefined && { bin }),
      ...(allowedTools !== undefined && { allowed_tools: allowedTools }),
      max_turns: String(readNumber('BACKEND_MAX_TURNS', MAX_TURNS_DEFAULT)),
      timeout: `${readNumber('QUERY_TIMEOUT_MS', TIMEOUT_MS_DEFAULT)}ms`,
    },
    channels: readChannels(kinds, read),
  }
}

function readChannels(kinds: readonly ChannelKind[], read: (name: string) => string | undefined): GatewayChannel[] {
  const readList = (name: string) =>
    read(name)
      ?.split(',')
      .map((id) => id.trim())
      .filter((id) => id !== '')
  const channels = kinds.flatMap((kind): GatewayChannel[] => {
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
        ...{ kind, token },
        ...(apiUrl !== undefined && { apiUrl }),
        ...(people !== undefined && { allowedPeople: people }),
        ...(places !== undefined && { allowedPlaces: places }),
      },
    ]
  })
  if (channels.length > 0) return channels
  const [first] = kinds
  const others = kinds.slice(1).map(({ tokenVariable }) => tokenVariable)
  const steps = first === undefined ? '' : `: ${first.tokenSteps.join(' ')}`
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  throw new MoleculeError('bad_config', `the gateway needs the token of a bot in ${first?.tokenVariable}${or}${steps}`)
}
