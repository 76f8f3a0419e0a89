/**
 * Finds the folder in which cgroups of children can be made: the platform's own cgroup (version 2), as this process
 * sees it. Reading it says nothing about permission; cgroups.ts tries it.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'

/** Our own cgroup in each cgroup2 mount that shows it. Empty where there is none. */
export async function findOwnCgroups(): Promise<string[]> {
  if (process.platform !== 'linux') return []
  try {
    const [mountinfo, membership] = await Promise.all([
      readFile('/proc/self/mountinfo', 'utf8'),
      readFile('/proc/self/cgroup', 'utf8'),
    ])
    return parseOwnCgroups(mountinfo, membership)
  } catch {
    // No /proc.
    return []
  }
}

/** From the texts of /proc/self/mountinfo and /proc/self/cgroup. */
export function parseOwnCgroups(mountinfo: string, membership: string): string[] {
  // Version 2 has the line `0::/path`; other lines are hierarchies of version 1.
  const own = /^0::(\/.*)$/m.exec(membership)?.[1]
  // `/..` at its start: our cgroup is outside of our cgroup namespace, so no path leads to it.
  if (own === undefined || own.split('/').includes('..')) return []
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    if (!after.startsWith('cgroup2 ')) return []
    const [, , , root = '', mountPoint = ''] = before.split(' ').map(unescapePath)
    const rootPrefix = root === '/' ? '' : root
    // The mount shows only a part of the hierarchy, and we are elsewhere.
    if (own !== root && !own.startsWith(`${rootPrefix}/`)) return []
    return [resolve(mountPoint, `.${own.slice(rootPrefix.length)}`)]
  })
}

/** The kernel writes a space, a tab, a newline and a backslash as `\040` and so on. */
const unescapePath = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
