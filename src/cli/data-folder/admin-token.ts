/**
 * The admin token's file: made at the first start, readable by its owner alone, where commands on this machine find
 * it. A token given by the environment is written there too, so that file and platform never disagree.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { writeFileAtomically } from './data-folder.ts'

export interface AdminToken {
  readonly token: string
  readonly path: string
}

export const adminTokenPath = (dataDir: string): string => join(dataDir, 'admin-token')

/** The token in force: the preset one, else the file's, else a new one; in every case the file holds it. */
export function ensureAdminToken(dataDir: string, preset: string | undefined, log: Log): AdminToken {
  const path = adminTokenPath(dataDir)
  restrictToOwner(path, log)
  const stored = readAdminToken(dataDir)
  const token = preset ? requireUsableToken(preset) : (stored ?? randomBytes(TOKEN_BYTES).toString('base64url'))
  if (token === stored) return { token, path }
  if (stored !== undefined) log.warn({ path }, 'MOLECULE_ADMIN_TOKEN replaces the admin token in the file')
  writeFileAtomically(path, `${token}\n`)
  return { token, path }
}

/** The token in the file, or undefined where there is none. */
export function readAdminToken(dataDir: string): string | undefined {
  const path = adminTokenPath(dataDir)
  try {
    const token = readFileSync(path, 'utf8').trim()
    return token === '' ? undefined : requireUsableToken(token)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (cause instanceof MoleculeError) throw cause
    throw new MoleculeError('bad_config', `the admin token file ${path} cannot be read`, { cause, details: { path } })
  }
}

const TOKEN_BYTES = 32
const OTHERS_MODE_BITS = 0o077

/** A restored backup or a careless copy often leaves the file open to the group. */
function restrictToOwner(path: string, log: Log): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  if (mode === undefined || (mode & OTHERS_MODE_BITS) === 0) return
  chmodSync(path, 0o600)
  log.warn(
    { path },
    'the admin token file was readable by others and is closed now; if others use this machine, replace the token',
  )
}

/** A token travels in a header: what cannot stand there would lock everybody out. */
function requireUsableToken(token: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token
  throw new MoleculeError('bad_config', 'the admin token must be 1 to 512 visible ASCII characters without blanks', {
    details: { key: 'MOLECULE_ADMIN_TOKEN' },
  })
}
