/**
 * Where a bridge's token comes from: the flag, the variable, or a file that is read before every call, so that a
 * rotated token is used as soon as it is written there.
 */
import { readFileSync } from 'node:fs'
import { MoleculeError } from '../../errors.ts'

export interface TokenSource {
  read(): string
  /** What to do when the platform refuses it. */
  readonly advice: string
}

export interface TokenSourceOptions {
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

export function openTokenSource({ token, tokenFile, env }: TokenSourceOptions): TokenSource {
  const fixed = token || (tokenFile ? undefined : env['MOLECULE_WORKSPACE_TOKEN'])
  if (fixed) return { read: () => requireUsableToken(fixed), advice: 'start it again with the new token' }
  const path = tokenFile || env['MOLECULE_WORKSPACE_TOKEN_FILE']
  if (path) return { read: () => readToken(path), advice: `write the new token to ${path}` }
  const message = 'connect needs the token of the workspace: --token, --token-file or MOLECULE_WORKSPACE_TOKEN'
  throw new MoleculeError('bad_config', message)
}

function readToken(path: string): string {
  try {
    return requireUsableToken(readFileSync(path, 'utf8').trim())
  } catch (cause) {
    if (cause instanceof MoleculeError) throw cause
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new MoleculeError('bad_config', `the token file ${path} cannot be read (${code})`, { cause, retryable: true })
  }
}

function requireUsableToken(token: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token
  throw new MoleculeError('bad_config', 'the token must be 1 to 512 visible characters without blanks')
}
