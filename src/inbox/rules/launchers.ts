/**
 * Commands that run what their further words name. Pure. A rule `timeout 60 *` would allow every command, so a rule of
 * such a command covers only the exact command that a person saw.
 */

/** They run their arguments, after options of their own. */
const LAUNCHERS: ReadonlySet<string> = wordsOf(
  'sh bash zsh dash ksh fish busybox toybox sudo su doas runuser env exec eval command builtin source . nohup nice ionice',
  'chrt taskset time timeout xargs parallel watch entr ssh mosh npx bunx uvx pipx stdbuf setsid unbuffer script strace',
  'ltrace gdb flock chroot unshare nsenter bwrap firejail fakeroot proot systemd-run screen tmux at batch nix-shell',
  'direnv caffeinate osascript powershell pwsh cmd',
)

/** They run the program in a file: the file must be among the fixed words. */
const INTERPRETERS: ReadonlySet<string> = wordsOf('node nodejs python pypy perl ruby php lua')

/** Programs some of whose subcommands run their arguments. Another subcommand must be the second word. */
const SUBCOMMANDS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['npm', wordsOf('exec x')],
  ['pnpm', wordsOf('exec dlx x')],
  ['yarn', wordsOf('exec dlx')],
  ['bun', wordsOf('x exec run')],
  ['deno', wordsOf('run eval x')],
  ['go', wordsOf('run')],
  ['git', wordsOf('submodule bisect')],
  ...['docker', 'podman', 'nerdctl'].map((name) => [name, wordsOf('run exec compose container')] as const),
  ['kubectl', wordsOf('run exec debug')],
  ['uv', wordsOf('run tool')],
  ...['poetry', 'pipenv', 'rye', 'hatch', 'mise', 'asdf'].map((name) => [name, wordsOf('run exec x')] as const),
  ['bundle', wordsOf('exec')],
  ['nix', wordsOf('run shell develop')],
])

function wordsOf(...lists: readonly string[]): ReadonlySet<string> {
  return new Set(lists.flatMap((list) => list.split(' ')))
}

/** True where words after these may name a command to run. */
export function mayRunFurtherWords([program = '', ...words]: readonly string[]): boolean {
  const name = nameOf(program)
  if (LAUNCHERS.has(name)) return true
  if (INTERPRETERS.has(name)) return !hasProgram(words)
  // `find . -exec rm *`
  if (name === 'find') return words.some((word) => word.startsWith('-exec') || word.startsWith('-ok'))
  const launching = SUBCOMMANDS.get(name)
  if (launching === undefined) return false
  const [subcommand = '-'] = words
  // An option may come before the subcommand: `git -c core.pager=x *`, `npm --prefix a *`.
  return subcommand.startsWith('-') || launching.has(subcommand)
}

/** `python tests/a.py *` and `python -m pytest *`, but not `python -c *`. */
function hasProgram([first = '-', second = '-']: readonly string[]): boolean {
  return !first.startsWith('-') || (first === '-m' && !second.startsWith('-'))
}

/** `/usr/bin/python3.12` is `python`. */
function nameOf(program: string): string {
  const base = program.slice(program.lastIndexOf('/') + 1).toLowerCase()
  let end = base.length
  while (end > 1 && '0123456789.'.includes(base.charAt(end - 1))) end -= 1
  return base.slice(0, end)
}
