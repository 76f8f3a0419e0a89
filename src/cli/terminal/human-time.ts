/** Times as people read them: `10 minutes`, `3 h 5 min`, `2 min ago`. Programs get numbers (`-o json`). */

const UNITS = [
  ['d', 24 * 3600],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** The two largest units: `1 d 2 h`, `30 min`, `45 s`. Part of a second counts as one. */
export function formatSeconds(seconds: number): string {
  let left = Math.max(0, Math.ceil(seconds))
  const first = UNITS.findIndex(([, size]) => left >= size)
  if (first === -1) return '0 s'
  const words: string[] = []
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size)
    left -= count * size
    if (count > 0) words.push(`${count} ${unit}`)
  }
  return words.join(' ')
}

/** Of a token: `used 5 min ago`, `never used`. */
export function lastUse({ last_used_at: at }: { readonly last_used_at: string | null }): string {
  return at === null ? 'never used' : `used ${formatSeconds((Date.now() - Date.parse(at)) / 1000)} ago`
}
