/**
 * Working folders as they are stored: one inside the data folder is relative to it, so that the data folder can be moved
 * or copied and a copy does not work in the folders of its original. Any other working folder is an absolute path.
 */
import { isAbsolute, join, relative, sep } from 'node:path'
import { withQueue } from '../../inbox/queue-rows.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { WORK_FOLDER, workspaceFolder } from './homes.ts'

/** `workspaces/ws-.../work` for a path inside one of the data folders; else the path itself. */
export function toStoredFolder(dataDirs: readonly string[], path: string): string {
  for (const dataDir of dataDirs) {
    const inside = relative(dataDir, path)
    if (inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return inside
  }
  return path
}

/** The absolute path. */
export const fromStoredFolder = (dataDir: string, stored: string): string =>
  isAbsolute(stored) ? stored : join(dataDir, stored)

/** A workspace as it was read, with the absolute path. */
export const withAbsoluteFolder = <T extends { readonly workingDir?: string }>(dataDir: string, workspace: T): T => {
  const { workingDir } = workspace
  return workingDir === undefined ? workspace : { ...workspace, workingDir: fromStoredFolder(dataDir, workingDir) }
}

/**
 * At start: earlier versions stored absolute paths. Those inside the data folder, or inside the folder that it was before
 * it was moved or copied, become relative. So does the default folder of a workspace, wherever the data folder was.
 */
export async function makeFoldersRelative(store: Store, dataDirs: readonly string[]): Promise<void> {
  const rows = await store.read(listFolders)
  for (const { id, workingDir } of rows) {
    const ownFolder = join(workspaceFolder(id), WORK_FOLDER)
    const stored = workingDir.endsWith(`${sep}${ownFolder}`) ? ownFolder : toStoredFolder(dataDirs, workingDir)
    if (stored !== workingDir) await store.write(() => replaceFolder(id, workingDir, stored), id)
  }
}

interface FolderSettings {
  readonly workingDir?: string
}

function* listFolders(): Transaction<{ id: string; workingDir: string }[]> {
  const rows = yield* sql<{ id: string; settings: string }>(
    `select w.id, w.settings from workspaces w where ${withQueue('w.id')} order by w.id`,
  )
  return rows.flatMap(({ id, settings }) => {
    const { workingDir } = JSON.parse(settings) as FolderSettings
    return workingDir !== undefined && isAbsolute(workingDir) ? [{ id, workingDir }] : []
  })
}

function* replaceFolder(id: string, from: string, to: string): Transaction<void> {
  const [row] = yield* sql<{ settings: string }>('select settings from workspaces where id = $1 /*for update*/', [id])
  const settings = JSON.parse(row?.settings ?? '{}') as FolderSettings
  // Changed in the meantime.
  if (settings.workingDir !== from) return
  yield* sql('update workspaces set settings = $2 where id = $1', [id, JSON.stringify({ ...settings, workingDir: to })])
}
