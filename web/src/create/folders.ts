/** Paths of the platform's machine, as a person types them. */

/** The last part of the path: `shop` of `/home/ada/shop/`. */
export const lastPart = (path: string): string => path.split(/[\\/]/).findLast((part) => part !== '') ?? ''

/** The folder that the path is in, and the name in it; undefined for the root. */
export function splitPath(path: string): { readonly parent: string; readonly name: string } | undefined {
  let end = path.length
  while (end > 1 && path[end - 1] === '/') end--
  const trimmed = path.slice(0, end)
  const at = trimmed.lastIndexOf('/')
  if (at < 0 || at === trimmed.length - 1) return undefined
  return { parent: trimmed.slice(0, at) || '/', name: trimmed.slice(at + 1) }
}

/** A path under the home folder begins with `~`. */
export function shortPath(path: string, home: string | undefined): string {
  if (home === undefined || (path !== home && !path.startsWith(`${home}/`))) return path
  return `~${path.slice(home.length)}`
}

/** Names with more differences than this are no misspelling. */
const DIFFERENCES_MAX = 2

/** The name that was probably meant; undefined when none is close. */
export function closestName(typed: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, differences: differences(typed.toLowerCase(), name.toLowerCase()) }))
    .filter((one) => one.differences <= Math.min(DIFFERENCES_MAX, typed.length - 1))
    .sort((a, b) => a.differences - b.differences)
  return ranked[0]?.name
}

/** How many letters must be added, removed or replaced. */
function differences(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (let at = 1; at <= to.length; at++) {
      const replaced = (row[at - 1] ?? 0) + (to[at - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
