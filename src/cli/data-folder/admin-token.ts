/**
 * The file of the admin token: created at the first start, readable by its owner only, read by commands on this machine.
 * A token from the environment is written to it, so the file always holds the token in force.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { SECRET_BYTES, SECRET_PREFIX } from '../../workspaces/tokens.ts'
import { writeFileAtomically } from './data-folder.ts'

export interface AdminToken {
  readonly token: string
  readonly path: string
}

export const adminTokenPath = (dataDir: string): string => join(dataDir, 'admin-token')

/** Takes the preset token, else the one in the file, else a new one, and writes it to the file. */
export function ensureAdminToken(dataDir: string, preset: string | undefined, log: Log): AdminToken {
  const path = adminTokenPath(dataDir)
  const stored = readAdminToken(dataDir)
  const token = preset ? requireAdminToken(preset) : (stored ?? newAdminToken())
  if (token.length < STRONG_CHARACTERS_MIN) {
    log.warn({ path }, `the admin token is short, so it can be guessed; use ${STRONG_CHARACTERS_MIN} random characters`)
  }
  if (token === stored) return { token, path }
  if (stored !== undefined) log.warn({ path }, 'MOLECULE_ADMIN_TOKEN replaces the admin token in the file')
  writeFileAtomically(path, `${token}\n`)
  return { token, path }
}

/** Undefined without a file, or with an empty one. */
export function readAdminToken(dataDir: string): string | undefined {
  const path = adminTokenPath(dataDir)
  try {
    const token = readFileSync(path, 'utf8').trim()
    return token === '' ? undefined : requireAdminToken(token)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (cause instanceof MoleculeError) throw cause
    throw new MoleculeError('bad_config', `the admin token file ${path} cannot be read`, { cause, details: { path } })
  }
}

/** Begins like every token of the platform, so that logs and replies hide it. */
const newAdminToken = (): string => SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64url')

/** A shorter token causes a warning: wrong tokens are not refused fast enough to make guessing it hopeless. */
const STRONG_CHARACTERS_MIN = 20

const requireAdminToken = (token: string): string =>
  requireUsableToken(token, 'the admin token', { key: 'MOLECULE_ADMIN_TOKEN' })

/** Prevents a token that no HTTP header can carry: every call with it would fail. */
export function requireUsableToken(token: string, name: string, details = {}): string {
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token
  throw new MoleculeError('bad_config', `${name} must be 1 to 512 visible ASCII characters without blanks`, { details })
}
