/**
 * How a command reaches the platform: its URL, the token to send, and which workspace a name means. A process of a
 * workspace uses only the workspace's token, so that an agent acts as itself. Without a URL, and with the token of the
 * data folder, a command talks only to the platform that runs on this data folder (recorded-platform.ts).
 */
import { createPlatformClient, type PlatformClient, type PlatformClientOptions } from '../../client/platform-client.ts'
import { listWorkspaces } from '../../client/workspaces.ts'
import { isHttpUrl, loadDataDir } from '../../config/config.ts'
import { DEFAULT_URL } from '../../config/settings.ts'
import { MoleculeError } from '../../errors.ts'
import { isWorkspaceId } from '../../ids.ts'
import { readAdminToken } from '../data-folder/admin-token.ts'
import { readRunningPlatform } from '../data-folder/data-folder.ts'
import { didYouMean } from '../terminal/near-misses.ts'
import type { Environment } from '../terminal/terminal.ts'
import { isAtUrl, LOOPBACK_HOSTS, requireRecordedPlatform } from './recorded-platform.ts'
import { openTokenSource } from './token-source.ts'

/** `givenUrl` is the URL that a person or the platform has set; undefined = the platform of the data folder. */
export function platformClientFor(
  env: Environment,
  givenUrl: string | undefined = env['MOLECULE_API_URL'],
): PlatformClient {
  return createPlatformClient(platformAccessFor(env, givenUrl))
}

/** The URL and the token of the platform, for a command that calls it without the client. `source` has set the URL. */
export function platformAccessFor(
  env: Environment,
  givenUrl: string | undefined,
  source = 'MOLECULE_API_URL',
): PlatformAccess {
  if (givenUrl && !isHttpUrl(givenUrl)) {
    const code = source.startsWith('--') ? 'invalid_request' : 'bad_config'
    throw new MoleculeError(code, `${source} is not an http address: "${givenUrl}"`)
  }
  return accessFor(env, givenUrl || undefined)
}

export type PlatformAccess = Pick<PlatformClientOptions, 'url' | 'token'>

function accessFor(env: Environment, givenUrl: string | undefined): PlatformAccess {
  const dataDir = loadDataDir({ flags: {}, env })
  const running = readRunningPlatform(dataDir)
  const url = givenUrl ?? running?.url ?? DEFAULT_URL
  const ownToken = env['MOLECULE_WORKSPACE_TOKEN']
  if (ownToken) return { url, token: ownToken }
  if (WORKSPACE_VARIABLES.some((name) => env[name])) {
    const file = env['MOLECULE_WORKSPACE_TOKEN_FILE']
    // Read before each call: the file has the token of the current turn.
    return { url, token: file ? openTokenSource({ token: undefined, tokenFile: file, env }).read : refuseAdminToken }
  }
  const adminToken = env['MOLECULE_ADMIN_TOKEN']
  if (adminToken && givenUrl !== undefined) return { url, token: adminToken }
  // "localhost" may lead to another address of this machine, at which another user may listen.
  const exactUrl = running !== undefined && isAtUrl(running, url) ? running.url : url
  if (!isOnThisMachine(exactUrl, running?.url)) return { url, token: undefined }
  return {
    url: exactUrl,
    // Checked before each call: a command may run for hours, and meanwhile the platform may stop.
    async token() {
      const token = adminToken || readAdminToken(dataDir)
      // There is nothing to protect, and the platform's refusal says what to do.
      if (token === undefined && givenUrl !== undefined) return undefined
      await requireRecordedPlatform(dataDir, exactUrl)
      return token
    },
  }
}

/** Set for the processes of a turn. MOLECULE_TURN is there even without `pass_meta`. */
const WORKSPACE_VARIABLES = ['MOLECULE_WORKSPACE_ID', 'MOLECULE_TURN'] as const

/** Prevents an agent without a token of its own from acting as the admin. */
function refuseAdminToken(): never {
  const message =
    'this process works for a workspace and has no MOLECULE_WORKSPACE_TOKEN; the admin token is not used here'
  throw new MoleculeError('unauthenticated', message)
}

const isOnThisMachine = (url: string, recordedUrl: string | undefined): boolean =>
  url === recordedUrl || LOOPBACK_HOSTS.has(new URL(url).hostname)

/** Takes an id or a name. Names need not be unique: the platform refuses an ambiguous one with the ids to choose from. */
export async function resolveWorkspaceId(platform: PlatformClient, idOrName: string): Promise<string> {
  if (isWorkspaceId(idOrName)) return idOrName
  if (idOrName.trim() === '') throw new MoleculeError('invalid_request', 'the name of a workspace must not be empty')
  try {
    return (await platform.call('GET /workspaces/{id}', { id: idOrName })).id
  } catch (thrown) {
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'not_found') throw thrown
    const all = await listWorkspaces(platform)
    // A list reads every config.yaml, so it may know a name that was written to a file just now.
    const [renamed, another] = all.filter(({ name }) => name === idOrName)
    if (renamed !== undefined && another === undefined) return renamed.id
    const names = all.map(({ name }) => name)
    const advice = didYouMean(idOrName, names) || `; ${availableNames(names)}`
    throw new MoleculeError('not_found', `there is no workspace called "${idOrName}"${advice}`, { cause: thrown })
  }
}

/** Names in the error; the rest becomes "and more". */
const NAMES_MAX = 20

function availableNames(names: readonly string[]): string {
  if (names.length === 0) return 'there is none yet: create one with "molecule init"'
  if (names.length === 1) return `the only one is "${names[0]}"`
  return `the workspaces are ${names.slice(0, NAMES_MAX).join(', ')}${names.length > NAMES_MAX ? ' and more' : ''}`
}

/** The name of a workspace, or its id where it was deleted meanwhile. */
export async function workspaceNameOf(client: PlatformClient, id: string): Promise<string> {
  try {
    return (await client.call('GET /workspaces/{id}', { id })).name
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return id
    throw thrown
  }
}
