/**
 * Caches a lookup by id until the next turn of the event loop. One commit leases up to thirty messages, and each of
 * them would read the same file and the same row.
 */
export function oncePerTick<T>(lookUp: (id: string) => T): (id: string) => T {
  const cache = new Map<string, T>()
  return (id) => {
    const known = cache.get(id)
    if (known !== undefined || cache.has(id)) return known as T
    if (cache.size === 0) setImmediate(() => cache.clear())
    const value = lookUp(id)
    cache.set(id, value)
    return value
  }
}
