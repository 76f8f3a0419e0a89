/**
 * The folders of workspaces: `<data-dir>/workspaces/ws-<ULID>` with `config.yaml`, copied from a template or made
 * empty. A deleted workspace's folder moves to the trash and is removed after a week. A template is a name, never a
 * path, so that it cannot point outside the folder of templates.
 */
import { statSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { WORKSPACE_CONFIG_FILE } from '../config/config-file.ts'
import { ignoreMissing } from './ignore-missing.ts'
import { AUTH_TOKEN_FILE, bringTokenBack, copyDefaultToken, removeStrayToken, setTokenAside } from './token-file.ts'

/** The folder that the agent works in, unless the owner sets another. Its files are work, not configuration. */
export const WORK_FOLDER = 'work'
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
  create(id: string, options: NewHome): Promise<void>
  /** Before a workspace gets another runtime: the token of the earlier one is renamed. Returns its new name. */
  setTokenAside(id: string, runtime: string): Promise<string | undefined>
  /** After a workspace has got this runtime: the token that was set aside for it is used again. */
  bringTokenBack(id: string, runtime: string): Promise<void>
  /** A token of claude that an earlier version copied into the workspace of another runtime. Returns its new name. */
  removeStrayToken(id: string, runtime: string): Promise<string | undefined>
  /** Removes the folder of a workspace that could not be created. */
  discard(id: string): Promise<void>
  trash(id: string, nowMs: number): Promise<void>
  sweepTrash(nowMs: number): Promise<void>
}

export interface NewHome {
  readonly template?: string | undefined
  readonly runtime: string
  /** Files of the template with a token of another runtime, relative to its folder. They are not copied. */
  readonly foreignTokens?: readonly string[]
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
    async create(id, { template, runtime, foreignTokens = [] }) {
      const home = path(id)
      await mkdir(home, { recursive: true, mode: 0o700 })
      if (template !== undefined) await copyTemplate(join(templates, template), home, foreignTokens)
      else await copyDefaultToken(templates, home, runtime)
      await mkdir(join(home, WORK_FOLDER), { recursive: true, mode: 0o700 })
    },
    discard: (id) => rm(path(id), { recursive: true, force: true }),
    async trash(id, nowMs) {
      await mkdir(trashDir, { recursive: true, mode: 0o700 })
      await ignoreMissing(rename(path(id), join(trashDir, `${folderName(id)}.${nowMs}`)))
    },
    sweepTrash: (nowMs) => sweepTrash(trashDir, nowMs),
    setTokenAside: (id, runtime) => setTokenAside(path(id), runtime),
    bringTokenBack: (id, runtime) => bringTokenBack(path(id), runtime),
    removeStrayToken: (id, runtime) => removeStrayToken(templates, path(id), runtime),
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
async function copyTemplate(template: string, home: string, foreignTokens: readonly string[]): Promise<void> {
  const left = new Set(foreignTokens.map((file) => resolve(template, file)))
  const filter = async (source: string) => !(left.has(resolve(source)) || (await lstat(source)).isSymbolicLink())
  await cp(template, home, { recursive: true, filter })
  await ignoreMissing(chmod(join(home, AUTH_TOKEN_FILE), 0o600))
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
