/**
 * What an agent reads from files because a command line can be read by everybody on the machine: its system prompt,
 * the settings of its MCP servers. A folder for each process, for this user alone, gone when the process is. Written at
 * once (these are a few KiB, beside a spawn), so that a process is started with its files in one breath. Those of a
 * platform that was killed are removed by the next that needs one.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'molecule-agent-'

export interface PrivateFolder {
  /** The path of a file with this content. */
  write(name: string, content: string): string
  /** With all that is in it. Idempotent. */
  remove(): void
}

/** On the disk from the first file on. */
export function createPrivateFolder(parent: string = tmpdir()): PrivateFolder {
  let path: string | undefined
  return {
    write(name, content) {
      path ??= make(parent)
      const file = join(path, name)
      writeFileSync(file, content, { mode: 0o600 })
      return file
    },
    remove() {
      if (path !== undefined) rmSync(path, { recursive: true, force: true })
    },
  }
}

function make(parent: string): string {
  for (const name of readdirSync(parent)) {
    const owner = /^molecule-agent-(\d+)-/.exec(name)?.[1]
    if (owner !== undefined && isGone(Number(owner))) removeIfOurs(join(parent, name))
  }
  // Made with mode 0700 by the system.
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    // One that we may not signal is there.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

function removeIfOurs(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // That of another user, who will do it.
  }
}
