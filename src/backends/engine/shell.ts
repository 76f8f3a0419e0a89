/**
 * The shell that runs the command of an owner, so that quoting, pipes and variables work as in a terminal. The message
 * is never part of that line: the command reads it from stdin.
 */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import type { Validation } from '../backend.ts'

export interface Shell {
  readonly path: string
  /** The program and its arguments that run the line. */
  command(line: string): readonly [string, ...string[]]
}

export function shellFor(platform: NodeJS.Platform, environment: Readonly<Record<string, string>>): Shell {
  if (platform !== 'win32') return { path: '/bin/sh', command: (line) => ['/bin/sh', '-c', line] }
  const path = environment['ComSpec'] ?? environment['COMSPEC'] ?? 'cmd.exe'
  // /d: no AutoRun commands. /s and one more pair of quotes: cmd.exe takes the line inside unchanged.
  return { path, command: (line) => [path, '/d', '/s', '/c', `"${line}"`] }
}

export async function validateShell({ path }: Shell): Promise<Validation> {
  try {
    await access(path, constants.X_OK)
    return { ok: true, note: `commands are run by ${path}` }
  } catch {
    return {
      ok: false,
      problem: `the shell ${path} is missing or not executable`,
      remedy: `install it, or make ${path} executable for this user`,
    }
  }
}
