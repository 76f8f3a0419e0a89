/**
 * Builds the command with which a child enters its cgroup before it becomes the program. Node cannot fork into a
 * cgroup, and moving the child from here is too late: under load the move took up to 128 ms (measured), in which a
 * child can fork. So a shell moves itself and then executes the program. It costs 0.2 ms for a command that is a shell
 * command anyway, and 0.7 ms for another program. A child that starts alone also waits 6 to 12 ms for the kernel's grace
 * period; children that start within a few milliseconds share it (all measured on a busy machine).
 */
import { accessSync, constants, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SpawnOptions } from './processes.ts'

const SHELL = '/bin/sh'
/** The exit code of a child that could not enter its cgroup. The program was not started then. */
const EXIT_NOT_ENTERED = 125

type Command = SpawnOptions['command']

/**
 * Undefined if a shell cannot start this child unchanged: it would hide that the program is missing, and it drops
 * variables whose names are not names of shell variables.
 */
export function enteringCommand(
  { command, cwd, env }: Pick<SpawnOptions, 'command' | 'cwd' | 'env'>,
  procsFile: string,
): Command | undefined {
  const [program, ...args] = command
  const enter = `echo $$ >'${procsFile.replaceAll("'", "'\\''")}' || exit ${EXIT_NOT_ENTERED}; `
  const [flag, line, ...rest] = args
  if (program === SHELL && flag === '-c' && line !== undefined) return [SHELL, '-c', `${enter}${line}`, ...rest]
  if (!Object.keys(env).every(isShellName) || !isProgram(program, cwd, env['PATH'])) return undefined
  // The shell sets PWD; a child without it must not get it.
  const unset = env['PWD'] === undefined ? 'unset PWD; ' : ''
  return [SHELL, '-c', `${enter}${unset}exec "$@"`, 'sh', program, ...args]
}

const isShellName = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name)

/** Whether the system would find the program, looked up as `execvp` does. */
function isProgram(program: string, cwd: string, path: string | undefined): boolean {
  if (program.includes('/')) return isExecutable(resolve(cwd, program))
  return (path ?? '').split(':').some((dir) => dir !== '' && isExecutable(resolve(cwd, dir, program)))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
