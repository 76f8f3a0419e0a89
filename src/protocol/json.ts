/**
 * JSON values as such: what is an object, when two values are the same, and the one text of a value that is hashed.
 * Used wherever the protocol looks into what callers sent. The recursion is bounded because everything that comes in
 * has passed `jsonDepthWithin` (schemas.ts).
 */

export type JsonObject = Record<string, unknown>

/** An object in the sense of JSON: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object that the text is; undefined for any other JSON value and for text that is not JSON. */
export function parseJsonObject(text: string): JsonObject | undefined {
  // Most lines that are not JSON (a warning of a program) are found here, without the cost of an exception.
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value if it is a string, else the empty string. */
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The same JSON value; the order of keys says nothing. */
export function jsonEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => jsonEqual(item, right[index]))
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]))
}

/** One text for one value: keys sorted by code unit, no spaces, absent members left out as JSON.stringify does. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value) ?? 'null'
  let text = ''
  for (const key of Object.keys(value).sort()) {
    const member = value[key]
    if (member === undefined) continue
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(member)}`
  }
  return `{${text}}`
}
