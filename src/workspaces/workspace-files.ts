/**
 * The files of a workspace's folder, for its owner: list, read, write, remove, within limits. Secrets can be written
 * and are never returned. `config.yaml` is validated before it is written, so that a typo cannot break a workspace.
 */
import { isUtf8 } from 'node:buffer'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { MoleculeError } from '../errors.ts'
import type { Store } from '../store/store.ts'
import { configErrorAt, ignoredKeyWarnings, WORKSPACE_CONFIG_FILE } from './config/config-file.ts'
import { type Homes, WORK_FOLDER, writeAtomically } from './homes/homes.ts'
import { ignoreMissing } from './homes/ignore-missing.ts'
import { PATH_DEPTH_MAX, resolvePath } from './homes/safe-path.ts'
import { toStoredFolder } from './homes/stored-folders.ts'
import { isTokenFile } from './homes/token-file.ts'
import { requireWorkingDir } from './homes/working-dir.ts'
import type { BackendCheck, Workspace } from './workspace.ts'
import { badConfigAsInvalidRequest, type ValidatedConfig, type WorkspaceConfigs } from './workspace-configs.ts'
import { changeStoreOnlySettings, findStoredConfig, requireWorkspace } from './workspace-rows.ts'

export const FILE_BYTES_MAX = 25 * 1024 * 1024
export const FILES_MAX = 1000

export interface FileEntry {
  readonly path: string
  readonly size: number
  readonly modifiedAtMs: number
}

/** Contract: paths are relative and plain; every refusal is a MoleculeError with the reason. */
export interface WorkspaceFiles {
  /** Sorted by path; at most `FILES_MAX`. */
  list(id: string): Promise<FileEntry[]>
  read(id: string, path: string): Promise<Buffer>
  /** Replaces the whole file; true when the file is new. */
  write(id: string, path: string, content: Buffer): Promise<boolean>
  /** Refuses what `write` would refuse, and writes nothing. Of `config.yaml`: whether the backend could run with it. */
  check(id: string, path: string, content: Buffer): Promise<BackendCheck>
  remove(id: string, path: string): Promise<void>
}

export interface WorkspaceFilesOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
}

export function createWorkspaceFiles(options: WorkspaceFilesOptions): WorkspaceFiles {
  const { store, homes } = options
  const required = async (id: string) => {
    const workspace = await store.read(() => requireWorkspace(id))
    if (homes.stamp(id) !== undefined) return workspace
    throw new MoleculeError('unsupported_operation', `the files of ${id} are on another machine`)
  }
  return {
    async list(id) {
      await required(id)
      return await listFiles(homes.path(id))
    },
    async read(id, path) {
      const workspace = await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isSecret(file, homes.path(id), workspace))
        throw new MoleculeError('forbidden', `${path} is a secret: it is never shown again`)
      return await readWholeFile(file, path)
    },
    async write(id, path, content) {
      await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isConfigPath(path)) return await writeConfig(id, content, options)
      const isNew = await requireWritable(file, homes.path(id))
      await placeFile(file, content).catch((error: unknown) => {
        throw toPathConflict(error, path)
      })
      return isNew
    },
    async check(id, path, content) {
      await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isConfigPath(path)) {
        const { checked } = (await validateConfigFile(id, content, options)).validated
        return { ...checked, warnings: [...ignoredKeyWarnings(content.toString()), ...(checked.warnings ?? [])] }
      }
      await requireWritable(file, homes.path(id))
      return { ok: true }
    },
    async remove(id, path) {
      await required(id)
      const file = await resolvePath(homes.path(id), path)
      if (isConfigPath(path))
        throw new MoleculeError('unsupported_operation', `a workspace needs its ${WORKSPACE_CONFIG_FILE}`)
      if ((await ignoreMissing(lstat(file))) === undefined) throw fileNotFound(path)
      await ignoreMissing(unlink(file))
      await removeEmptyAbove(file, homes.path(id))
    },
  }
}

/** True when the file is new. */
async function requireWritable(file: string, home: string): Promise<boolean> {
  const isNew = (await ignoreMissing(lstat(file))) === undefined
  if (isNew) await requireBelowFileLimit(home)
  return isNew
}

async function placeFile(file: string, content: Buffer): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeAtomically(file, content)
}

/** A second request can put a folder in the place of the file, or a file in the place of its folder, after the check. */
function toPathConflict(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'EISDIR' && code !== 'ENOTDIR' && code !== 'EEXIST') return error
  return new MoleculeError('invalid_request', `${path} is a folder, or one of its folders is a file`, { cause: error })
}

/**
 * Refuses an invalid config with file and line before anything is written. Only an owner who writes the file here may
 * move the working folder: a `working_dir` that the agent writes to the disk has no effect.
 */
async function writeConfig(id: string, content: Buffer, options: WorkspaceFilesOptions): Promise<boolean> {
  const { store, homes, configs } = options
  const { text, validated } = await validateConfigFile(id, content, options)
  const { workingDir } = validated.config
  await configs.save(id, text, validated)
  if (workingDir === undefined) return false
  const stored = toStoredFolder([homes.dataDir], workingDir)
  await store.write(() => changeStoreOnlySettings(id, { workingDir: stored }))
  return false
}

async function validateConfigFile(
  id: string,
  content: Buffer,
  { store, homes, configs }: WorkspaceFilesOptions,
): Promise<{ text: string; validated: ValidatedConfig }> {
  if (!isUtf8(content)) throw new MoleculeError('invalid_request', `${WORKSPACE_CONFIG_FILE} is not valid UTF-8`)
  const text = content.toString('utf8')
  const path = homes.configPath(id)
  const validate = async () => {
    const stored = await store.read(() => findStoredConfig(id))
    const validated = await configs.validate(text, path, stored?.permission)
    requireFolder(text, path, validated)
    return { text, validated }
  }
  return await badConfigAsInvalidRequest(validate, { sentFile: true })
}

/** The same refusal as for `PATCH`, at the place of the key. */
function requireFolder(text: string, path: string, { config: { workingDir } }: ValidatedConfig): void {
  if (workingDir === undefined) return
  try {
    requireWorkingDir(workingDir)
  } catch (cause) {
    const at = /^working_dir\s*:/m.test(text) ? ['working_dir'] : ['runtime_config', 'working_dir']
    throw configErrorAt(text, path, { at, message: (cause as Error).message, cause })
  }
}

/** Compared without case: on some disks `.AUTH-TOKEN` and `.auth-token` are the same file. */
const isConfigPath = (path: string): boolean => path.toLowerCase() === WORKSPACE_CONFIG_FILE

function isSecret(file: string, home: string, { runtimeConfig }: Workspace): boolean {
  const named = runtimeConfig['auth_token_file']
  if (isTokenFile(basename(file))) return true
  return typeof named === 'string' && resolve(home, named).toLowerCase() === file.toLowerCase()
}

/**
 * O_NOFOLLOW: a link that replaced the file after the check is not followed. O_NONBLOCK: a pipe would block the read.
 */
async function readWholeFile(file: string, path: string): Promise<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await ignoreMissing(open(file, flags))
  if (handle === undefined) throw fileNotFound(path)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw fileNotFound(path)
    if (stats.size <= FILE_BYTES_MAX) return await handle.readFile()
    throw new MoleculeError('too_large', `${path} is larger than ${FILE_BYTES_MAX} bytes`, {
      details: { limitBytes: FILE_BYTES_MAX },
    })
  } finally {
    await handle.close()
  }
}

async function requireBelowFileLimit(home: string): Promise<void> {
  if ((await listFiles(home)).length < FILES_MAX) return
  throw new MoleculeError('invalid_request', `there are already ${FILES_MAX} files: remove some first`)
}

/** Lists plain files, without those of the working folder. */
async function listFiles(home: string): Promise<FileEntry[]> {
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

/** Removes the folders that the removed file leaves empty. */
async function removeEmptyAbove(file: string, home: string): Promise<void> {
  for (let folder = dirname(file); folder !== home; folder = dirname(folder)) {
    try {
      await rmdir(folder)
    } catch {
      // The folder is not empty.
      return
    }
  }
}

const fileNotFound = (path: string): MoleculeError => new MoleculeError('not_found', `there is no file ${path}`)
