/**
 * The log-in of codex: its files, the provider that its settings choose, and when `OPENAI_API_KEY` is its key. Reads
 * whether there is a log-in, never the log-in itself.
 */
import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

type Variables = Readonly<Record<string, string | undefined>>

export const codexLoginFiles = (env: Variables) => {
  const folder = env['CODEX_HOME'] || join(env['HOME'] || homedir(), '.codex')
  return [join(folder, 'auth.json'), join(folder, 'config.toml')] as const
}

/**
 * The key of `OPENAI_API_KEY`, if codex has nothing else to log in with. It is the last source: it must not change which
 * account pays for a user who is logged in.
 */
export function openaiKeyOf(env: Variables): string | undefined {
  const key = env['OPENAI_API_KEY']
  const [authFile, configFile] = codexLoginFiles(env)
  if (!key || statSync(authFile, { throwIfNoEntry: false })?.isFile() === true) return undefined
  const provider = codexProvider(textOf(configFile))
  return provider === undefined || provider.usesLogIn ? key : undefined
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Missing or unreadable: treated as no choice.
    return ''
  }
}

interface CodexProvider {
  readonly name: string
  readonly envKey: string | undefined
  readonly usesLogIn: boolean
}

/** The provider that `config.toml` chooses; undefined for codex's own. */
export function codexProvider(config: string): CodexProvider | undefined {
  const values = tomlValues(config)
  const profile = values.get('profile')
  const name = values.get(`profiles.${profile}.model_provider`) ?? values.get('model_provider')
  if (name === undefined || name === 'openai') return undefined
  const of = (key: string) => values.get(`model_providers.${name}.${key}`)
  return { name, envKey: of('env_key') || undefined, usesLogIn: of('requires_openai_auth') === 'true' }
}

/** The strings and booleans of a TOML text by their dotted names. Enough for codex's settings; anything else is skipped. */
function tomlValues(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  let table = ''
  const nameOf = (key: string) => key.replaceAll(/\s|["']/g, '')
  const add = (prefix: string, line: string) => {
    const at = line.indexOf('=')
    const given = at === -1 ? '' : line.slice(0, at).trim()
    const key = /^[\w."'\s-]*$/.test(given) ? given : ''
    const value = at === -1 ? '' : line.slice(at + 1).trim()
    const name = nameOf(`${prefix}${key}`)
    const inline = /^\{(.*)\}/.exec(value)?.[1]
    if (inline !== undefined) for (const pair of inline.split(',')) add(`${name}.`, pair)
    const [, double, single, word] = /^(?:"([^"]*)"|'([^']*)'|(true|false))/.exec(value) ?? []
    const found = double ?? single ?? word
    if (key !== '' && found !== undefined) values.set(name, found)
  }
  for (const line of text.split('\n')) {
    const header = /^\s*\[([^[\]]+)\]\s*(#.*)?$/.exec(line)?.[1]
    if (header !== undefined) table = `${nameOf(header)}.`
    else add(table, line)
  }
  return values
}
