/**
 * The state folder of a bridge, `<home>/bridge/<platform>_<workspace>/<n>`: lock, spool, process records, log. Each bridge
 * of a workspace on this machine locks one folder until it ends. A start takes the first free number, so a bridge that
 * crashed finds its spool again, and adopts the spools of other bridges that are gone. The bridge id follows the number.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { type DataFolder, openDataFolder } from '../data-folder/data-folder.ts'
import { ensureHostId } from '../data-folder/host-id.ts'

/** Bridges of one workspace on one machine; a further one is refused. */
const BRIDGES_MAX = 64

export interface StateFolder {
  readonly path: string
  readonly spoolDir: string
  readonly recordsDir: string
  readonly logPath: string
  /** Identifies this machine and user. */
  readonly hostId: string
  /** Identifies this bridge, also after a restart. */
  readonly bridgeId: string
  /** Bridges that are gone. Their folders stay locked until they are released. */
  readonly gone: readonly GoneBridge[]
  release(): void
}

export interface GoneBridge {
  readonly bridgeId: string
  /** Records of the processes it left running. */
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

/** The name of an earlier version, kept so that its outcomes are found. */
const SPOOL_FOLDER = 'outbox'
const RECORDS_FOLDER = 'processes'

/** Includes the host name. Prevents equal ids on two machines that share or copied a home folder. */
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

/** Moves the spools of bridges that are gone into ours. A folder that can be locked belongs to a bridge that is gone. */
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
