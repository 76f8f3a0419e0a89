/**
 * The files of a workspace's folder, for its owner: listed, read, written, removed, within limits. Secrets go in and
 * never come out. `config.yaml` is judged before it is written, so that nobody can break a workspace by a slip.
 */
import { isUtf8 } from 'node:buffer'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { MoleculeError } from '../errors.ts'
import type { Store } from '../store/store.ts'
import { CONFIG_FILE } from './config-file.ts'
import type { Configs } from './configs.ts'
import { PATH_DEPTH_MAX, resolvePath, WORK_FOLDER } from './file-path.ts'
import { AUTH_TOKEN_FILE, type Homes, ignoreMissing, writeAside } from './homes.ts'
import { changeOwn, find, notThere } from './rows.ts'
import { requireWorkingDir } from './working-dir.ts'
import type { Workspace } from './workspace.ts'
import { accept, isWorkspaceId } from './workspaces.ts'

export const FILE_BYTES_MAX = 25 * 1024 * 1024
export const FILES_MAX = 1000

export interface FileEntry {
  readonly path: string
  readonly size: number
  readonly modifiedAtMs: number
}

/** Contract: paths are relative and plain; every refusal is a MoleculeError that says what is wrong. */
export interface WorkspaceFiles {
  /** By path; at most `FILES_MAX`. */
  list(id: string): Promise<FileEntry[]>
  read(id: string, path: string): Promise<Buffer>
  /** Replaces the whole file; true when there was none before. */
  write(id: string, path: string, content: Buffer): Promise<boolean>
  remove(id: string, path: string): Promise<void>
}

export interface FilesOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: Configs
}

export function createFiles(options: FilesOptions): WorkspaceFiles {
  const { store, homes } = options
  const required = async (id: string) => {
    const workspace = isWorkspaceId(id) ? await store.read(() => find(id)) : undefined
    if (workspace === undefined) throw notThere(id)
    if (homes.stamp(id) !== undefined) return workspace
    throw new MoleculeError('unsupported_operation', `the files of ${id} are on another machine`)
  }
  return {
    async list(id) {
      await required(id)
      return await walk(homes.path(id))
    },
    async read(id, path) {
      const workspace = await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isSecret(file, homes.path(id), workspace))
        throw new MoleculeError('forbidden', `${path} is a secret: it is never shown again`)
      return await readWhole(file, path)
    },
    async write(id, path, content) {
      await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isConfig(path)) return await writeConfig(id, content, options)
      const isNew = (await ignoreMissing(lstat(file))) === undefined
      if (isNew) await requireRoom(homes.path(id))
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await writeAside(file, content)
      return isNew
    },
    async remove(id, path) {
      await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isConfig(path)) throw new MoleculeError('unsupported_operation', `a workspace needs its ${CONFIG_FILE}`)
      if ((await ignoreMissing(lstat(file))) === undefined) throw noFile(path)
      await ignoreMissing(unlink(file))
      await removeEmptyAbove(file, homes.path(id))
    },
  }
}

/** Refused with file and line before anything is written. Only here may the file move the working folder. */
async function writeConfig(id: string, content: Buffer, { store, homes, configs }: FilesOptions): Promise<boolean> {
  if (!isUtf8(content)) throw new MoleculeError('invalid_request', `${CONFIG_FILE} is not valid UTF-8`)
  const text = content.toString('utf8')
  const judged = await accept(() => configs.judge(text, homes.configPath(id)))
  const { workingDir } = judged.config
  if (workingDir !== undefined) requireWorkingDir(workingDir)
  await configs.keep(id, text, judged)
  if (workingDir !== undefined) await store.write(() => changeOwn(id, { workingDir }))
  return false
}

/** Names are compared without case: some disks do not tell `.AUTH-TOKEN` from `.auth-token`. */
const isConfig = (path: string): boolean => path.toLowerCase() === CONFIG_FILE

function isSecret(file: string, home: string, { runtimeConfig }: Workspace): boolean {
  const named = runtimeConfig['auth_token_file']
  if (basename(file).toLowerCase() === AUTH_TOKEN_FILE) return true
  return typeof named === 'string' && resolve(home, named).toLowerCase() === file.toLowerCase()
}

/** A link put in place since the path was looked at is not followed, and a pipe is not waited for. */
async function readWhole(file: string, path: string): Promise<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await ignoreMissing(open(file, flags))
  if (handle === undefined) throw noFile(path)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw noFile(path)
    if (stats.size <= FILE_BYTES_MAX) return await handle.readFile()
    throw new MoleculeError('too_large', `${path} is larger than ${FILE_BYTES_MAX} bytes`, {
      details: { limitBytes: FILE_BYTES_MAX },
    })
  } finally {
    await handle.close()
  }
}

async function requireRoom(home: string): Promise<void> {
  if ((await walk(home)).length < FILES_MAX) return
  throw new MoleculeError('invalid_request', `there are ${FILES_MAX} files already: remove some first`)
}

/** Plain files only, without the working folder. */
async function walk(home: string): Promise<FileEntry[]> {
  const found: FileEntry[] = []
  const visit = async (names: readonly string[]): Promise<void> => {
    const entries = (await ignoreMissing(readdir(join(home, ...names), { withFileTypes: true }))) ?? []
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = [...names, entry.name]
      if (found.length >= FILES_MAX || path.length > PATH_DEPTH_MAX) return
      if (entry.isDirectory() && !(names.length === 0 && entry.name === WORK_FOLDER)) await visit(path)
      const stats = entry.isFile() ? await ignoreMissing(lstat(join(home, ...path))) : undefined
      if (stats !== undefined) found.push({ path: path.join('/'), size: stats.size, modifiedAtMs: stats.mtimeMs })
    }
  }
  await visit([])
  return found
}

/** Folders exist for their files: an empty one goes with its last. */
async function removeEmptyAbove(file: string, home: string): Promise<void> {
  for (let folder = dirname(file); folder !== home; folder = dirname(folder)) {
    try {
      await rmdir(folder)
    } catch {
      // It is not empty, which is what was asked.
      return
    }
  }
}

const noFile = (path: string): MoleculeError => new MoleculeError('not_found', `there is no file ${path}`)
