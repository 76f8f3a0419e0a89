/**
 * The environment of a child: our own environment without the platform's secrets, plus this child's `additions`. An
 * agent can be prompt-injected and reads its environment, so every `MOLECULE_` variable is stripped by its prefix,
 * future ones too. That also hides the workspace variables of a platform that was itself started inside a workspace.
 */

const STRIPPED_NAMES: ReadonlySet<string> = new Set(['DATABASE_URL', 'LINE_CHANNEL_TOKEN'])
/** PG: the variables of the PostgreSQL client, which may lead to the store (PGPASSWORD, PGPASSFILE, PGSERVICE, ...). */
const STRIPPED_PREFIXES = ['MOLECULE_', 'DISCORD_', 'TELEGRAM_', 'PG'] as const

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

/** Compares in capitals, because on Windows `Database_Url` is the same variable. */
function isStripped(name: string): boolean {
  const capitals = name.toUpperCase()
  return STRIPPED_NAMES.has(capitals) || STRIPPED_PREFIXES.some((prefix) => capitals.startsWith(prefix))
}
