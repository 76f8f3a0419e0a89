/**
 * Checks whether the agent of a workspace has a log-in, from variables and files alone: no program starts and no model is
 * called. The fingerprint changes when a log-in may have changed; it contains no secret.
 */
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { LoginCheck, LoginsOptions } from '../workspaces/logins.ts'
import { AGENT_CLIS, loginRemedy } from './doctor/agent-clis.ts'
import type { Environment } from './terminal/terminal.ts'

/** Variables that may hold a log-in or choose one. */
const CREDENTIAL_VARIABLE = /KEY|TOKEN|AUTH|CREDENTIAL|_USE_|_HOME$|_DIR$|^HOME$/

/** The check returns undefined for a backend that runs none of the known agent CLIs. */
export const createLoginCheck =
  (env: Environment): LoginsOptions['check'] =>
  (runtime, options) =>
    checkLogin(env, runtime, options)

function checkLogin(
  env: Environment,
  runtime: string,
  options: Readonly<Record<string, string>>,
): LoginCheck | undefined {
  const cli = AGENT_CLIS.find(({ backend }) => backend === runtime)
  if (cli === undefined) return undefined
  const tokenFile = options['auth_token_file'] || join(options['config_dir'] ?? '/', '.auth-token')
  const tokenStamp = stampOf(tokenFile)
  const remedy = loginRemedy(cli, env)
  const isFound = tokenStamp.hasContent || cli.payer(env) !== undefined
  const stamps = [tokenStamp, ...cli.loginFiles(env).map(stampOf)].map(({ stamp }) => stamp)
  return {
    fingerprint: fingerprintOf(env, stamps),
    ...(!isFound && { problem: `${cli.bin} is not logged in: ${remedy}` }),
    refused: `the model provider refused the log-in of ${cli.bin}: ${remedy}`,
  }
}

function stampOf(path: string): { readonly stamp: string; readonly hasContent: boolean } {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile()) return { stamp: '', hasContent: false }
  return { stamp: `${found.mtimeMs}.${found.size}`, hasContent: found.size > 0 }
}

function fingerprintOf(env: Environment, stamps: readonly string[]): string {
  const hash = createHash('sha256').update(stamps.join('\n'))
  for (const name of Object.keys(env).sort()) if (CREDENTIAL_VARIABLE.test(name)) hash.update(`${name}=${env[name]}\n`)
  return hash.digest('hex').slice(0, 16)
}
