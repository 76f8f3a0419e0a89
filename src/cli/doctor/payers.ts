/**
 * Who pays for what an agent asks of its model, as Molecule runs it: a variable of the environment, by its name, or the
 * log-in that the CLI keeps itself. Told from which variables are set and which files are there, in the order in which
 * each CLI looks (measured, where it can be); no secret is taken from one, and none is shown.
 */
import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

export type Environment = Readonly<Record<string, string | undefined>>

/** The payer in words; undefined where none was found. */
export type Payer = (env: Environment) => string | undefined

const LOG_IN = 'its own log-in'

const homeOf = (env: Environment): string => env['HOME'] || homedir()
const isSet = (env: Environment, name: string): boolean => (env[name] ?? '') !== ''
const firstSet = (env: Environment, ...names: string[]) => names.find((name) => isSet(env, name))
const loggedInBy = (...paths: string[]) => (paths.some(isFile) ? LOG_IN : undefined)

/** A key goes before its own log-in, also where somebody is logged in: that surprises people. */
export const claudePayer: Payer = (env) =>
  cloudOf(env, 'CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY') ??
  firstSet(env, 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_AUTH_TOKEN') ??
  loggedInBy(join(env['CLAUDE_CONFIG_DIR'] || join(homeOf(env), '.claude'), '.credentials.json')) ??
  claudeAccount(join(env['CLAUDE_CONFIG_DIR'] || homeOf(env), '.claude.json'))

/** On a Mac the log-in itself is in the keychain; whose it is stands here. */
const claudeAccount = (path: string) => (/"oauthAccount"\s*:\s*\{/.test(textOf(path)) ? LOG_IN : undefined)

/** `OPENAI_API_KEY` alone it reads for a provider of the user's own only, which its settings name. */
export const codexPayer: Payer = (env) =>
  firstSet(env, 'CODEX_API_KEY') ?? loggedInBy(join(env['CODEX_HOME'] || join(homeOf(env), '.codex'), 'auth.json'))

/** What was chosen in its own dialogue is in force; without that, the environment decides. */
export const geminiPayer: Payer = (env) => {
  const folder = join(env['GEMINI_CLI_HOME'] || homeOf(env), '.gemini')
  const logIn = loggedInBy(join(folder, 'oauth_creds.json'))
  switch (/"selectedType"\s*:\s*"([^"]+)"/.exec(textOf(join(folder, 'settings.json')))?.[1]) {
    case 'oauth-personal':
      return logIn
    case 'gemini-api-key':
      return firstSet(env, 'GEMINI_API_KEY')
    default:
      return cloudOf(env, 'GOOGLE_GENAI_USE_VERTEXAI') ?? firstSet(env, 'GEMINI_API_KEY') ?? logIn
  }
}

/** It has a log-in for each provider; which of all these pays is decided by the model. */
export const opencodePayer: Payer = (env) =>
  loggedInBy(join(env['XDG_DATA_HOME'] || join(homeOf(env), '.local', 'share'), 'opencode', 'auth.json')) ??
  anyOf(env, 'OPENCODE_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY')

export const hermesPayer: Payer = (env) => {
  const folder = env['HERMES_HOME'] || join(homeOf(env), '.hermes')
  return (
    loggedInBy(join(folder, '.env'), join(folder, 'auth.json')) ??
    anyOf(env, 'OPENROUTER_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY')
  )
}

export const openclawPayer: Payer = (env) =>
  loggedInBy(join(env['OPENCLAW_STATE_DIR'] || join(homeOf(env), '.openclaw'), 'openclaw.json')) ??
  anyOf(env, 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY')

/** Some are switched on by a variable, and then use the account that the machine has with a cloud. */
function cloudOf(env: Environment, ...names: string[]): string | undefined {
  const name = names.find((one) => /^(1|true|yes|on)$/i.test(env[one] ?? ''))
  return name === undefined ? undefined : `the cloud account (${name})`
}

function anyOf(env: Environment, ...names: string[]): string | undefined {
  const set = names.filter((name) => isSet(env, name))
  return set.length === 0 ? undefined : set.join(' or ')
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Not there, or not for us: then nothing was chosen as far as we can see.
    return ''
  }
}
