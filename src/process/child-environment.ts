/**
 * The environment of a child: the inherited one without secrets, plus this child's `additions`. An agent can be
 * prompt-injected and reads its environment. Every `MOLECULE_` variable is stripped by its prefix, future ones too; that
 * also hides the workspace variables of a platform that was itself started inside a workspace.
 */

/** Variables of the store and of the chat bots. On a platform they are its own, on a bridge they are its user's. */
const PLATFORM_NAMES: ReadonlySet<string> = new Set(['DATABASE_URL', 'SOCKET_CHANNEL_TOKEN'])
/** PG: the variables of the PostgreSQL client, which may lead to the store (PGPASSWORD, PGPASSFILE, PGSERVICE, ...). */
const PLATFORM_PREFIXES = ['DISCORD_', 'SLACK_', 'TELEGRAM_', 'MATRIX_', 'PG'] as const

type Variables = Readonly<Record<string, string | undefined>>

/** What the children of a platform inherit: no secret of the store and the bots. */
export const platformEnvironment = (own: Variables): Record<string, string> => filter(own, (name) => !isPlatforms(name))

/** What the children of a bridge inherit. The platform's store and bots are elsewhere, so these variables are the user's. */
export const bridgeEnvironment = (own: Variables): Record<string, string> => filter(own, () => true)

export function childEnvironment(inherited: Variables, additions: Variables): Record<string, string> {
  return { ...filter(inherited, (name) => !name.startsWith('MOLECULE_')), ...filter(additions, () => true) }
}

/** Compares in capitals, because on Windows `Database_Url` is the same variable. */
function filter(variables: Variables, keeps: (capitals: string) => boolean): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && keeps(name.toUpperCase())) kept[name] = value
  }
  return kept
}

function isPlatforms(name: string): boolean {
  return PLATFORM_NAMES.has(name) || PLATFORM_PREFIXES.some((prefix) => name.startsWith(prefix))
}
