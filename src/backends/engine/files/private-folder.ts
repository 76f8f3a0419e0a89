/**
 * Private files of an agent's process: its system prompt, the settings of its MCP servers. They are not on its command
 * line, because every user of the machine can read that. One folder for each process, readable only by this user,
 * removed with the process. Folders of a platform that was killed are removed by the next one that needs a folder.
 * Written synchronously: a few KiB cost little beside a spawn.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'molecule-agent-'

export interface PrivateFolder {
  /** Writes a file and returns its path. */
  write(name: string, content: string): string
  /** Removes the folder with its files. Idempotent. */
  remove(): void
}

/** The folder is created with its first file. */
export function createPrivateFolder(parent: string = tmpdir()): PrivateFolder {
  let path: string | undefined
  return {
    write(name, content) {
      path ??= createFolder(parent)
      const file = join(path, name)
      writeFileSync(file, content, { mode: 0o600 })
      return file
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
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
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

function removeIfOurs(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // The folder belongs to another user, whose platform removes it.
  }
}
