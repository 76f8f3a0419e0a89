/**
 * The folders of workspaces: `<data-dir>/workspaces/ws-<ULID>` with its `config.yaml`, made from a template or from
 * nothing, moved to the trash when the workspace is deleted and removed from there after a week. A template is named,
 * never pathed: no name leads out of the folder of templates.
 */
import { statSync } from 'node:fs'
import { chmod, copyFile, cp, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { WORKSPACE_CONFIG_FILE } from '../config/config-file.ts'

export const AUTH_TOKEN_FILE = '.auth-token'
/** The folder that the agent works in, unless the owner sets another. Its files are work, not configuration. */
export const WORK_FOLDER = 'work'
/** Where the token of a workspace without a template comes from. */
const DEFAULT_TEMPLATE = 'claude-code-default'
const TEMPLATE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
/** How long the files of a deleted workspace can still be fetched back by hand. */
const TRASH_KEPT_MS = 7 * 24 * 3600_000

export interface Homes {
  /** The workspace's folder; it may not exist, as on another host of the same store. */
  path(id: string): string
  configPath(id: string): string
  /** Changes whenever the config does; undefined where the workspace has no folder here, '' where no config. */
  stamp(id: string): string | undefined
  readConfig(id: string): Promise<string>
  writeConfig(id: string, text: string): Promise<void>
  /** The template's own config, undefined when it has none; an unknown template is refused. */
  templateConfig(template: string): Promise<{ path: string; text: string | undefined }>
  /** Makes the folder, whole or not at all. */
  create(id: string, template: string | undefined): Promise<void>
  /** Takes back a folder whose workspace did not come to be. */
  discard(id: string): Promise<void>
  trash(id: string, nowMs: number): Promise<void>
  sweepTrash(nowMs: number): Promise<void>
}

export function createHomes(dataDir: string): Homes {
  const trashDir = join(dataDir, 'trash')
  const path = (id: string) => join(dataDir, 'workspaces', folderName(id))
  const configPath = (id: string) => join(path(id), WORKSPACE_CONFIG_FILE)
  const templates = join(dataDir, 'templates')
  return {
    path,
    configPath,
    stamp(id) {
      // Asked before every turn: a look at an inode that is in memory is cheaper than a trip to the thread pool.
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

async function requireTemplate(templates: string, template: string): Promise<string> {
  const found = TEMPLATE_NAME.test(template) && (await isFolder(join(templates, template)))
  if (found) return template
  const names = (await ignoreMissing(readdir(templates))) ?? []
  const list = names.filter((name) => TEMPLATE_NAME.test(name)).sort()
  const choice = list.length === 0 ? `there is none in ${templates}` : `known: ${list.join(', ')}`
  throw new MoleculeError('invalid_request', `there is no template ${JSON.stringify(template)}; ${choice}`, {
    details: { path: 'template' },
  })
}

/** Links are left out: what they point to is not part of the template. */
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

/** Written aside and renamed, so that a turn that starts meanwhile reads the old text or the new, never half. */
export async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  const aside = `${path}.${process.pid}.${++temporaryFiles}.new`
  try {
    await writeFile(aside, content, { mode: 0o600, flag: 'wx', flush: true })
    await rename(aside, path)
  } catch (error) {
    await rm(aside, { force: true })
    throw error
  }
}

let temporaryFiles = 0

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
