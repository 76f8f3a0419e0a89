/** What a value gives: without the members that are undefined, at every depth. Readers treat them like absent ones. */
export function present<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(present) as Value
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, present(member)])) as Value
}
