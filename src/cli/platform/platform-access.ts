/**
 * How a command reaches the platform: its URL, the token to send, and which workspace a name means. A process of a
 * workspace uses only the workspace's token, so that an agent acts as itself. Without a URL, and with the token of the
 * data folder, a command talks only to the platform that runs on this data folder (recorded-platform.ts).
 */
import { createPlatformClient, type PlatformClient, type PlatformClientOptions } from '../../client/platform-client.ts'
import { isHttpUrl, loadDataDir } from '../../config/config.ts'
import { DEFAULT_URL } from '../../config/settings.ts'
import { MoleculeError } from '../../errors.ts'
import { isWorkspaceId } from '../../ids.ts'
import { readAdminToken } from '../data-folder/admin-token.ts'
import { readRunningPlatform } from '../data-folder/data-folder.ts'
import type { Environment } from '../terminal/terminal.ts'
import { isAtUrl, LOOPBACK_HOSTS, requireRecordedPlatform } from './recorded-platform.ts'

/** `givenUrl` is the URL that a person or the platform has set; undefined = the platform of the data folder. */
export function platformClientFor(
  env: Environment,
  givenUrl: string | undefined = env['MOLECULE_API_URL'],
): PlatformClient {
  if (givenUrl && !isHttpUrl(givenUrl)) {
    throw new MoleculeError('bad_config', `MOLECULE_API_URL is not an http address: "${givenUrl}"`)
  }
  return createPlatformClient(accessFor(env, givenUrl || undefined))
}

type Access = Pick<PlatformClientOptions, 'url' | 'token'>

function accessFor(env: Environment, givenUrl: string | undefined): Access {
  const dataDir = loadDataDir({ flags: {}, env })
  const running = readRunningPlatform(dataDir)
  const url = givenUrl ?? running?.url ?? DEFAULT_URL
  const ownToken = env['MOLECULE_WORKSPACE_TOKEN']
  if (ownToken) return { url, token: ownToken }
  if (WORKSPACE_VARIABLES.some((name) => env[name])) return { url, token: refuseAdminToken }
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

/** Takes an id or a name. Names need not be unique: an ambiguous one is refused with the ids to choose from. */
export async function resolveWorkspaceId(platform: PlatformClient, idOrName: string): Promise<string> {
  if (isWorkspaceId(idOrName)) return idOrName
  const all = await platform.listWorkspaces()
  const named = all.filter(({ id, name }) => id === idOrName || name === idOrName)
  const [workspace] = named
  if (workspace === undefined) {
    throw new MoleculeError('not_found', `there is no workspace called "${idOrName}"; ${availableNames(all)}`)
  }
  if (named.length === 1) return workspace.id
  const ids = named.map(({ id }) => id).join(', ')
  throw new MoleculeError('invalid_request', `${named.length} workspaces are called "${idOrName}"; use an id: ${ids}`)
}

/** Names in the error; the rest becomes "and more". */
const NAMES_MAX = 20

function availableNames(workspaces: readonly { readonly name: string }[]): string {
  if (workspaces.length === 0) return 'there is none yet: create one with "molecule init"'
  const names = workspaces.slice(0, NAMES_MAX).map(({ name }) => name)
  return `there are ${names.join(', ')}${workspaces.length > NAMES_MAX ? ' and more' : ''}`
}
