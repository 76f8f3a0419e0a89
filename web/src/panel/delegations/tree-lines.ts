/** Which wires of a tree cross a row: to the row itself, and past it to later tasks of the levels above. */

export interface TreeLine {
  /** 1 is the level below the first task. */
  readonly level: number
  /** pass: to a later row; branch: to this row and on to a later one; end: to this row. */
  readonly shape: 'pass' | 'branch' | 'end'
}

/** Deeper levels are shown at this one: the name needs its room. */
export const DEPTH_SHOWN_MAX = 6

/** Each task stands right below its parent. */
export function treeLines(tasks: readonly { readonly depth: number }[], index: number): TreeLine[] {
  const own = Math.min(tasks[index]?.depth ?? 0, DEPTH_SHOWN_MAX)
  const later = tasks.slice(index + 1).map(({ depth }) => Math.min(depth, DEPTH_SHOWN_MAX))
  const goesOn = (level: number) => later.find((depth) => depth <= level) === level
  const levels = Array.from({ length: own }, (_value, at) => at + 1)
  return levels.flatMap((level): TreeLine[] => {
    if (level === own) return [{ level, shape: goesOn(level) ? 'branch' : 'end' }]
    return goesOn(level) ? [{ level, shape: 'pass' }] : []
  })
}
