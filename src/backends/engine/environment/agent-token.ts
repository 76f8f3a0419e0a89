/**
 * The token of an agent: from the environment first, then from a file, given to that agent's process alone under the
 * variable that its program reads. Read when a process is started, so that a renewed token is used; never logged.
 */
import { readFile } from 'node:fs/promises'
import { MoleculeError } from '../../../errors.ts'

const TOKEN_BYTES_MAX = 64 * 1024

export interface AgentTokenSource {
  /** The variable under which the program reads a token that comes from a file. */
  readonly variable: string
  /** Variables that may hold that token, the first that is set wins. */
  readonly from: readonly string[]
  /** Other ways to be logged in by the environment: where one is set, no file is read. */
  readonly instead: readonly string[]
}

type Variables = Readonly<Record<string, string>>

/** What the environment of the process gets on top; nothing where there is no token, or the program has its own log-in. */
export async function readTokenVariables(
  auth: AgentTokenSource,
  environment: Variables,
  file: string,
): Promise<Variables> {
  const given = auth.from.map((name) => environment[name]).find((value) => value)
  if (given !== undefined) return { [auth.variable]: given }
  if (file === '' || auth.instead.some((name) => environment[name])) return {}
  const token = await readTokenFile(file)
  return token === '' ? {} : { [auth.variable]: token }
}

async function readTokenFile(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).slice(0, TOKEN_BYTES_MAX).trim()
  } catch (error) {
    // No such file is no token: the program may be logged in by itself.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw new MoleculeError('bad_config', `the token file ${file} cannot be read`, { cause: error })
  }
}
