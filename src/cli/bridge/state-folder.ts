/**
 * What a bridge keeps on its machine: `<home>/bridge/<platform>_<workspace>/<n>`, closed to others, one folder for each
 * bridge of the workspace that runs here, held by a lock for life. The first free one is taken, so that a bridge that
 * crashed finds what it left; what lies in the others whose bridges are gone is taken over. Under one number a bridge
 * has the same name after every restart.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { type DataFolder, openDataFolder } from '../data-folder/data-folder.ts'
import { ensureHostId } from '../data-folder/host-id.ts'

/** Bridges of one workspace on one machine. */
const BRIDGES_MAX = 64

export interface StateFolder {
  readonly path: string
  readonly spoolDir: string
  readonly recordsDir: string
  readonly logPath: string
  /** Names this machine and user. */
  readonly hostId: string
  /** Names this bridge, and after a restart its successor. */
  readonly bridgeId: string
  /** Bridges that are gone; nobody takes their places before they are released. */
  readonly gone: readonly GoneBridge[]
  release(): void
}

export interface GoneBridge {
  readonly bridgeId: string
  /** What it had running. */
  readonly recordsDir: string
  release(): void
}

export interface StateFolderOptions {
  /** The data folder of this user. */
  readonly home: string
  readonly apiUrl: string
  readonly workspaceId: string
}

export function openStateFolder({ home, apiUrl, workspaceId }: StateFolderOptions): StateFolder {
  const root = join(home, 'bridge')
  const workspaceDir = join(root, `${new URL(apiUrl).host.replaceAll(/[^\w.-]/g, '_')}_${workspaceId}`)
  mkdirSync(workspaceDir, { recursive: true, mode: 0o700 })
  const hostId = ensureHostId(root)
  const { lock, number } = lockFirstFree(workspaceDir)
  const spoolDir = join(lock.path, SPOOL_FOLDER)
  mkdirSync(spoolDir, { recursive: true, mode: 0o700 })
  const idOf = (other: number) => bridgeIdOf(hostId, { workspaceId, number: other })
  const gone = adoptGoneBridges(workspaceDir, { number, spoolDir }).map(({ path, release, number: other }) => ({
    bridgeId: idOf(other),
    recordsDir: join(path, RECORDS_FOLDER),
    release,
  }))
  return {
    path: lock.path,
    spoolDir,
    recordsDir: join(lock.path, RECORDS_FOLDER),
    logPath: join(lock.path, 'bridge.log'),
    hostId,
    bridgeId: idOf(number),
    gone,
    release: lock.release,
  }
}

const SPOOL_FOLDER = 'outbox'
const RECORDS_FOLDER = 'processes'

/** The machine's own name is part of it: a home that was copied, or is shared, must not make two bridges one. */
function bridgeIdOf(hostId: string, { workspaceId, number }: { workspaceId: string; number: number }): string {
  const machine = createHash('sha256').update(`${hostname()} ${workspaceId}`).digest('hex').slice(0, 12)
  return `${hostId}-${machine}-${number}`
}

function lockFirstFree(workspaceDir: string): { lock: DataFolder; number: number } {
  for (let number = 0; number < BRIDGES_MAX; number++) {
    const lock = tryLock(join(workspaceDir, String(number)))
    if (lock !== undefined) return { lock, number }
  }
  throw new MoleculeError('in_use', `${BRIDGES_MAX} bridges of this workspace run on this machine already; stop one`)
}

function tryLock(path: string): DataFolder | undefined {
  try {
    return openDataFolder(path)
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'in_use') return undefined
    throw thrown
  }
}

/** Moves the spools of bridges that are gone into ours and keeps their places. A lock that can be had proves it. */
function adoptGoneBridges(workspaceDir: string, { number, spoolDir }: { number: number; spoolDir: string }) {
  const others = readdirSync(workspaceDir).filter((name) => /^\d{1,2}$/.test(name) && Number(name) !== number)
  return others.map(Number).flatMap((other) => {
    const lock = tryLock(join(workspaceDir, String(other)))
    if (lock === undefined) return []
    for (const file of filesIn(join(lock.path, SPOOL_FOLDER))) {
      renameSync(join(lock.path, SPOOL_FOLDER, file), join(spoolDir, file))
    }
    return [{ ...lock, number: other }]
  })
}

function filesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
