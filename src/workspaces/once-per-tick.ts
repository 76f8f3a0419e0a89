/**
 * A look that is shared by all who ask within one turn of the event loop: a commit hands out thirty messages at a time,
 * and each would look at the same file and the same row. What changes meanwhile is seen in the next turn of the loop.
 */
export function oncePerTick<T>(look: (id: string) => T): (id: string) => T {
  const seen = new Map<string, T>()
  return (id) => {
    const known = seen.get(id)
    if (known !== undefined || seen.has(id)) return known as T
    if (seen.size === 0) setImmediate(() => seen.clear())
    const value = look(id)
    seen.set(id, value)
    return value
  }
}
