/**
 * Hides the password of `--database` in the list of processes, which every user of the machine can read. The arguments
 * are visible until the title changes, so this runs before anything else is loaded. DATABASE_URL is never visible.
 */

const FLAG = '--database'
const HIDDEN = '***'

/** The arguments with the password hidden; undefined if they hold none. */
export function withoutDatabasePassword(argv: readonly string[]): string[] | undefined {
  const shown = argv.map((arg, index) => {
    if (argv[index - 1] === FLAG) return maskPassword(arg)
    return arg.startsWith(`${FLAG}=`) ? `${FLAG}=${maskPassword(arg.slice(FLAG.length + 1))}` : arg
  })
  return shown.some((arg, index) => arg !== argv[index]) ? shown : undefined
}

/** A URL that does not parse may hold a password all the same. */
function maskPassword(url: string): string {
  if (!URL.canParse(url)) return HIDDEN
  const parsed = new URL(url)
  const secretParams = [...parsed.searchParams.keys()].filter((name) => /pass/i.test(name))
  if (parsed.password === '' && secretParams.length === 0) return url
  if (parsed.password !== '') parsed.password = HIDDEN
  for (const name of secretParams) parsed.searchParams.set(name, HIDDEN)
  return parsed.href
}

export function hideDatabasePassword(argv: readonly string[]): void {
  const shown = withoutDatabasePassword(argv)
  if (shown !== undefined) process.title = ['molecule', ...shown].join(' ')
}
