/**
 * The token of an agent: from the environment, else from a file. Only the agent's process gets it, in the variable that
 * its program reads. It is read at each start of a process, so that a renewed token is used. Invariant: never logged.
 */
import { readFile } from 'node:fs/promises'
import { MoleculeError } from '../../../errors.ts'

/** The rest of a longer file is ignored. */
const TOKEN_BYTES_MAX = 64 * 1024

export interface AgentTokenSource {
  /** The variable in which the program reads its token. */
  readonly variable: string
  /** Variables that may hold that token. The first that is set is used. */
  readonly from: readonly string[]
  /** Variables of other kinds of login. If one is set, the file is not read. */
  readonly instead: readonly string[]
}

type Variables = Readonly<Record<string, string>>

/** The variables to add for the process; none if there is no token or the program has its own login. */
export async function readTokenVariables(
  auth: AgentTokenSource,
  environment: Variables,
  file: string,
): Promise<Variables> {
  const inherited = auth.from.map((name) => environment[name]).find((value) => value)
  if (inherited !== undefined) return { [auth.variable]: inherited }
  if (file === '' || auth.instead.some((name) => environment[name])) return {}
  const token = await readTokenFile(file)
  return token === '' ? {} : { [auth.variable]: token }
}

async function readTokenFile(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).slice(0, TOKEN_BYTES_MAX).trim()
  } catch (error) {
    // A missing file is not an error: the program may have its own login.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw new MoleculeError('bad_config', `the token file ${file} cannot be read`, { cause: error })
  }
}
