/** How long to wait before the next try. */

/** Doubles with each failure: `firstMs` after none, never more than `maxMs`. */
export const backoffMs = (failures: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** failures, maxMs)

/** The step of that index; the last one for all further tries. */
export const stepOf = (steps: readonly number[], index: number): number => steps[Math.min(index, steps.length - 1)] ?? 0
