/**
 * The environment of a child: what we inherited, less what is nobody's but ours, plus what this child is given on
 * purpose. A prompt-injectable agent reads its environment, so what is stripped is stripped by default: every
 * `MOLECULE_` variable, also those that do not exist yet. A child knows a workspace only if it is told of it here,
 * never because the platform itself happened to be started inside another one.
 */

const STRIPPED_NAMES: ReadonlySet<string> = new Set(['DATABASE_URL'])
const STRIPPED_PREFIXES = ['MOLECULE_', 'DISCORD_', 'TELEGRAM_'] as const

type Variables = Readonly<Record<string, string | undefined>>

export function childEnvironment(inherited: Variables, additions: Variables): Record<string, string> {
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && !isStripped(name)) environment[name] = value
  }
  for (const [name, value] of Object.entries(additions)) {
    if (value !== undefined) environment[name] = value
  }
  return environment
}

/** In capitals, because on Windows `Database_Url` is the same variable. */
function isStripped(name: string): boolean {
  const capitals = name.toUpperCase()
  return STRIPPED_NAMES.has(capitals) || STRIPPED_PREFIXES.some((prefix) => capitals.startsWith(prefix))
}
