/**
 * Private files of an agent's process: its system prompt, the settings of its MCP servers. They are not on its command
 * line, because every user of the machine can read that. One folder for each process, readable only by this user,
 * removed with the process. Folders of a platform that was killed are removed by the next one that needs a folder.
 * Written synchronously: a few KiB cost little beside a spawn.
 */
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'molecule-agent-'
/** Says where the process runs that made the folder. */
const MARK = '.made-by'

export interface PrivateFolder {
  /** Writes a file and returns its path. */
  write(name: string, content: string): string
  /** Makes a new folder in it and returns its path. */
  makeFolder(name: string): string
  /** Removes the folder with its files. Idempotent. */
  remove(): void
}

/** The folder is created with its first content. */
export function createPrivateFolder(parent: string = tmpdir()): PrivateFolder {
  let path: string | undefined
  return {
    write(name, content) {
      path ??= createFolder(parent)
      const file = join(path, name)
      writeFileSync(file, content, { mode: 0o600 })
      return file
    },
    makeFolder(name) {
      path ??= createFolder(parent)
      const folder = join(path, name)
      mkdirSync(folder, { mode: 0o700 })
      return folder
    },
    remove() {
      if (path !== undefined) rmSync(path, { recursive: true, force: true })
    },
  }
}

function createFolder(parent: string): string {
  for (const name of readdirSync(parent)) {
    const owner = /^molecule-agent-(\d+)-/.exec(name)?.[1]
    if (owner !== undefined && isGone(Number(owner))) removeIfOurs(join(parent, name))
  }
  // mkdtemp creates it with mode 0700.
  const path = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
  writeFileSync(join(path, MARK), processSpace(), { mode: 0o600 })
  return path
}

/** A pid means something only here: containers with one temporary folder have pids of their own. */
function processSpace(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    // Not Linux.
    return hostname()
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    // EPERM means that the process exists.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

/**
 * Everyone may make a folder of that name in the temporary folder, and a platform of root could remove it. So it must be
 * a real folder of this user that no other user can change, with the mark of a platform of this machine.
 */
function removeIfOurs(path: string): void {
  try {
    const { uid, mode } = lstatSync(path)
    const isOurs = uid === process.getuid?.() && (mode & 0o170077) === 0o040000
    if (isOurs && readFileSync(join(path, MARK), 'utf8') === processSpace()) {
      rmSync(path, { recursive: true, force: true })
    }
  } catch {
    // Another platform has removed it, or it has no mark.
  }
}
