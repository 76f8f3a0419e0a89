/**
 * The shell that runs an exec command, so that quoting, pipes and variables work as in a terminal. The message is
 * never part of the line it is given: it comes on stdin.
 */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import type { Validation } from '../backend.ts'

export interface Shell {
  readonly path: string
  /** Program and arguments that run the line. */
  command(line: string): readonly [string, ...string[]]
}

export function shellFor(platform: NodeJS.Platform, environment: Readonly<Record<string, string>>): Shell {
  if (platform !== 'win32') return { path: '/bin/sh', command: (line) => ['/bin/sh', '-c', line] }
  const path = environment['ComSpec'] ?? environment['COMSPEC'] ?? 'cmd.exe'
  // /d: no AutoRun commands; /s with one more pair of quotes: the line inside is taken as it is.
  return { path, command: (line) => [path, '/d', '/s', '/c', `"${line}"`] }
}

export async function validateShell({ path }: Shell): Promise<Validation> {
  try {
    await access(path, constants.X_OK)
    return { ok: true, note: `commands are run by ${path}` }
  } catch {
    return {
      ok: false,
      problem: `the shell ${path} is not there or not executable`,
      remedy: `install it, or make ${path} executable for this user`,
    }
  }
}
