/**
 * The folders of workspaces: `<data-dir>/workspaces/ws-<ULID>` with `config.yaml`, copied from a template or made
 * empty. A deleted workspace's folder moves to the trash and is removed after a week. A template is a name, never a
 * path, so that it cannot point outside the folder of templates.
 */
import { statSync } from 'node:fs'
import { chmod, copyFile, cp, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { WORKSPACE_CONFIG_FILE } from '../config/config-file.ts'

export const AUTH_TOKEN_FILE = '.auth-token'
/** The folder that the agent works in, unless the owner sets another. Its files are work, not configuration. */
export const WORK_FOLDER = 'work'
/** A workspace without a template gets its agent's token from this one. */
const DEFAULT_TEMPLATE = 'claude-code-default'
const TEMPLATE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
/** Until then an owner can restore the files of a deleted workspace by hand. */
const TRASH_KEPT_MS = 7 * 24 * 3600_000

export interface Homes {
  readonly dataDir: string
  /** The workspace's folder. It does not exist when the workspace belongs to another host of the same store. */
  path(id: string): string
  configPath(id: string): string
  /** Changes whenever the config does; undefined when the folder is missing, '' when only the config is missing. */
  stamp(id: string): string | undefined
  readConfig(id: string): Promise<string>
  writeConfig(id: string, text: string): Promise<void>
  /** The config of the template, undefined when it has none. Throws for an unknown template. */
  templateConfig(template: string): Promise<{ path: string; text: string | undefined }>
  /** Makes the folder. After a failure the caller calls `discard`. */
  create(id: string, template: string | undefined): Promise<void>
  /** Removes the folder of a workspace that could not be created. */
  discard(id: string): Promise<void>
  trash(id: string, nowMs: number): Promise<void>
  sweepTrash(nowMs: number): Promise<void>
}

export function createHomes(dataDir: string): Homes {
  const trashDir = join(dataDir, 'trash')
  const path = (id: string) => join(dataDir, workspaceFolder(id))
  const configPath = (id: string) => join(path(id), WORKSPACE_CONFIG_FILE)
  const templates = join(dataDir, 'templates')
  return {
    dataDir,
    path,
    configPath,
    stamp(id) {
      // Called before every turn: a synchronous stat of a cached inode is cheaper than a thread-pool round trip.
      const config = statSync(configPath(id), { throwIfNoEntry: false, bigint: true })
      if (config !== undefined) return `${config.mtimeNs}.${config.size}.${config.ino}`
      return statSync(path(id), { throwIfNoEntry: false }) === undefined ? undefined : ''
    },
    readConfig: (id) => readFile(configPath(id), 'utf8'),
    writeConfig: (id, text) => writeAtomically(configPath(id), text),
    async templateConfig(template) {
      const folder = join(templates, await requireTemplate(templates, template))
      const file = join(folder, WORKSPACE_CONFIG_FILE)
      return { path: file, text: await readIfExists(file) }
    },
    async create(id, template) {
      const home = path(id)
      await mkdir(home, { recursive: true, mode: 0o700 })
      if (template !== undefined) await copyTemplate(join(templates, template), home)
      else await copyIfExists(join(templates, DEFAULT_TEMPLATE, AUTH_TOKEN_FILE), join(home, AUTH_TOKEN_FILE))
      await mkdir(join(home, WORK_FOLDER), { recursive: true, mode: 0o700 })
    },
    discard: (id) => rm(path(id), { recursive: true, force: true }),
    async trash(id, nowMs) {
      await mkdir(trashDir, { recursive: true, mode: 0o700 })
      await ignoreMissing(rename(path(id), join(trashDir, `${folderName(id)}.${nowMs}`)))
    },
    sweepTrash: (nowMs) => sweepTrash(trashDir, nowMs),
  }
}

const folderName = (id: string): string => id.replace('ws_', 'ws-')

/** Relative to the data folder. */
export const workspaceFolder = (id: string): string => join('workspaces', folderName(id))

async function requireTemplate(templates: string, template: string): Promise<string> {
  const found = TEMPLATE_NAME.test(template) && (await isFolder(join(templates, template)))
  if (found) return template
  const names = (await ignoreMissing(readdir(templates))) ?? []
  const list = names.filter((name) => TEMPLATE_NAME.test(name)).sort()
  const choice = list.length === 0 ? `there are no templates in ${templates}` : `known: ${list.join(', ')}`
  throw new MoleculeError('invalid_request', `there is no template ${JSON.stringify(template)}; ${choice}`, {
    details: { path: 'template' },
  })
}

/** Links are not copied: their target is not part of the template. */
async function copyTemplate(template: string, home: string): Promise<void> {
  await cp(template, home, { recursive: true, filter: async (source) => !(await lstat(source)).isSymbolicLink() })
  await ignoreMissing(chmod(join(home, AUTH_TOKEN_FILE), 0o600))
}

async function copyIfExists(from: string, to: string): Promise<void> {
  await ignoreMissing(copyFile(from, to))
  await ignoreMissing(chmod(to, 0o600))
}

async function sweepTrash(trashDir: string, nowMs: number): Promise<void> {
  for (const name of (await ignoreMissing(readdir(trashDir))) ?? []) {
    const trashedAtMs = Number(/\.(\d+)$/.exec(name)?.[1])
    if (nowMs - trashedAtMs < TRASH_KEPT_MS || Number.isNaN(trashedAtMs)) continue
    await rm(join(trashDir, name), { recursive: true, force: true })
  }
}

/** Writes a temporary file and renames it, so that a turn that starts meanwhile never reads half of the file. */
export async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  // Not the name with an ending: a name may have 255 bytes. Not a counter: a file that a crash left would be in the way.
  const temporary = join(dirname(path), `.molecule-${ulid()}.new`)
  try {
    await writeFile(temporary, content, { mode: 0o600, flag: 'wx', flush: true })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

const readIfExists = (path: string): Promise<string | undefined> => ignoreMissing(readFile(path, 'utf8'))

async function isFolder(path: string): Promise<boolean> {
  const stats = await ignoreMissing(lstat(path))
  return stats?.isDirectory() ?? false
}

export async function ignoreMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
