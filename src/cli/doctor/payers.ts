/**
 * The payer of an agent's model calls: a variable, by its name, or the log-in that the CLI keeps. Derived from which
 * variables are set and which files exist, in the order in which each CLI looks (measured where possible). No secret is
 * read or shown.
 */
import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { codexLoginFiles, codexProvider } from '../../backends/codex/login.ts'
import type { Environment } from '../terminal/terminal.ts'

export { codexLoginFiles }

/** Describes the payer; undefined when none was found. */
export type Payer = (env: Environment) => string | undefined

const LOG_IN = 'its own log-in'

const homeOf = (env: Environment): string => env['HOME'] || homedir()
const isSet = (env: Environment, name: string): boolean => (env[name] ?? '') !== ''
const firstSet = (env: Environment, ...names: string[]) => names.find((name) => isSet(env, name))
const loggedInBy = (...paths: string[]) => (paths.some(isFile) ? LOG_IN : undefined)

/** A key wins over the log-in even when the user is logged in, which surprises users. */
export const claudePayer: Payer = (env) =>
  cloudOf(env, 'CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY') ??
  firstSet(env, 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_AUTH_TOKEN') ??
  loggedInBy(claudeLoginFiles(env)[0]) ??
  claudeAccount(claudeLoginFiles(env)[1])

export const claudeLoginFiles = (env: Environment) =>
  [
    join(env['CLAUDE_CONFIG_DIR'] || join(homeOf(env), '.claude'), '.credentials.json'),
    join(env['CLAUDE_CONFIG_DIR'] || homeOf(env), '.claude.json'),
  ] as const

/** On a Mac the log-in is in the keychain; this file only names its account. */
const claudeAccount = (path: string) => (/"oauthAccount"\s*:\s*\{/.test(textOf(path)) ? LOG_IN : undefined)

/**
 * A provider that the user's settings choose pays by the variable that they name, or needs no key. `OPENAI_API_KEY` pays
 * last, so that it never replaces a log-in.
 */
export const codexPayer: Payer = (env) => {
  const [authFile, configFile] = codexLoginFiles(env)
  const provider = codexProvider(textOf(configFile))
  const account = () => firstSet(env, 'CODEX_API_KEY') ?? loggedInBy(authFile) ?? firstSet(env, 'OPENAI_API_KEY')
  if (provider === undefined) return account()
  if (provider.envKey !== undefined) return firstSet(env, provider.envKey)
  return provider.usesLogIn ? account() : `the provider "${provider.name}"`
}

/** Names the variable that codex's settings ask for and that is not set. */
export const codexMissingKey: Payer = (env) => {
  const [, configFile] = codexLoginFiles(env)
  const { name, envKey } = codexProvider(textOf(configFile)) ?? {}
  if (envKey === undefined || isSet(env, envKey)) return undefined
  return `set ${envKey}: it is the env_key of the provider "${name}" in ${configFile}`
}

/** The choice in its own dialogue wins; without one, the environment decides. */
export const geminiPayer: Payer = (env) => {
  const [credentials, settings] = geminiLoginFiles(env)
  const logIn = loggedInBy(credentials)
  switch (/"selectedType"\s*:\s*"([^"]+)"/.exec(textOf(settings))?.[1]) {
    case 'oauth-personal':
      return logIn
    case 'gemini-api-key':
      return firstSet(env, 'GEMINI_API_KEY')
    default:
      return cloudOf(env, 'GOOGLE_GENAI_USE_VERTEXAI') ?? firstSet(env, 'GEMINI_API_KEY') ?? logIn
  }
}

export const geminiLoginFiles = (env: Environment) => {
  const folder = join(env['GEMINI_CLI_HOME'] || homeOf(env), '.gemini')
  return [join(folder, 'oauth_creds.json'), join(folder, 'settings.json')] as const
}

/** It has one log-in per provider; the model decides which of these pays. */
export const opencodePayer: Payer = (env) =>
  loggedInBy(...opencodeLoginFiles(env)) ??
  anyOf(env, 'OPENCODE_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY')

export const opencodeLoginFiles = (env: Environment) => [
  join(env['XDG_DATA_HOME'] || join(homeOf(env), '.local', 'share'), 'opencode', 'auth.json'),
]

export const hermesPayer: Payer = (env) =>
  loggedInBy(...hermesLoginFiles(env)) ?? anyOf(env, 'OPENROUTER_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY')

export const hermesLoginFiles = (env: Environment) => {
  const folder = env['HERMES_HOME'] || join(homeOf(env), '.hermes')
  return [join(folder, '.env'), join(folder, 'auth.json')]
}

export const openclawPayer: Payer = (env) =>
  loggedInBy(...openclawLoginFiles(env)) ?? anyOf(env, 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY')

export const openclawLoginFiles = (env: Environment) => [
  join(env['OPENCLAW_STATE_DIR'] || join(homeOf(env), '.openclaw'), 'openclaw.json'),
]

/** A variable makes some CLIs use the machine's cloud account. */
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
    // Missing or unreadable: treated as no choice.
    return ''
  }
}
