/**
 * How a command reaches the platform: its URL, the token to send, and which workspace a name means. A workspace's own
 * token comes first, so that an agent acts as itself. The admin token in the data folder is sent to loopback only.
 */
import { createPlatformClient, type PlatformClient } from '../../client/platform-client.ts'
import { isHttpUrl, loadDataDir } from '../../config/config.ts'
import { DEFAULT_URL } from '../../config/settings.ts'
import { MoleculeError } from '../../errors.ts'
import { isWorkspaceId } from '../../ids.ts'
import { readAdminToken } from '../data-folder/admin-token.ts'
import type { Environment } from '../terminal/terminal.ts'

export function platformClientFor(env: Environment): PlatformClient {
  const url = env['MOLECULE_API_URL'] || DEFAULT_URL
  if (!isHttpUrl(url)) throw new MoleculeError('bad_config', `MOLECULE_API_URL is not an http address: "${url}"`)
  return createPlatformClient({ url, token: tokenFor(url, env) })
}

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

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

function tokenFor(url: string, env: Environment): string | undefined {
  const given = env['MOLECULE_WORKSPACE_TOKEN'] || env['MOLECULE_ADMIN_TOKEN']
  if (given) return given
  if (!LOOPBACK_HOSTS.has(new URL(url).hostname)) return undefined
  return readAdminToken(loadDataDir({ flags: {}, env }))
}
