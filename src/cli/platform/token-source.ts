/**
 * The source of a bridge's token: the flag, the variable, or a file that is read before every call, so that a rotated
 * token is used as soon as it is in the file.
 */
import { readFileSync } from 'node:fs'
import { MoleculeError } from '../../errors.ts'
import { requireUsableToken } from '../data-folder/admin-token.ts'
import type { Environment } from '../terminal/terminal.ts'

export interface TokenSource {
  read(): string
  /** Where it comes from: the flag, the variable or the file. */
  readonly origin: string
  /** What to do when the platform refuses the token. */
  readonly advice: string
}

export interface TokenSourceOptions {
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly env: Environment
}

export function openTokenSource({ token, tokenFile, env }: TokenSourceOptions): TokenSource {
  const fixed = token || (tokenFile ? undefined : env['MOLECULE_WORKSPACE_TOKEN'])
  if (fixed)
    return {
      read: () => requireUsableToken(fixed, 'the token'),
      origin: token ? '--token' : 'MOLECULE_WORKSPACE_TOKEN',
      advice: 'start the bridge again with the new token',
    }
  const path = tokenFile || env['MOLECULE_WORKSPACE_TOKEN_FILE']
  if (path) return { read: () => readToken(path), origin: path, advice: `write the new token to ${path}` }
  const message = 'connect needs the token of the workspace: --token, --token-file or MOLECULE_WORKSPACE_TOKEN'
  throw new MoleculeError('bad_config', message)
}

function readToken(path: string): string {
  try {
    return requireUsableToken(readFileSync(path, 'utf8').trim(), 'the token')
  } catch (cause) {
    if (cause instanceof MoleculeError) throw cause
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new MoleculeError('bad_config', `the token file ${path} cannot be read (${code})`, { cause, retryable: true })
  }
}
