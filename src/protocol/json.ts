/**
 * JSON values: what is an object, when two values are equal, and the canonical text that is hashed. The recursion is
 * bounded, because every incoming body has passed `jsonDepthWithin` (schemas.ts).
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

/** The object inside of a text, such as `[API Error: {...}]`: from the first brace to the last. */
export function findJsonObject(text: string): JsonObject | undefined {
  const start = text.indexOf('{')
  return start === -1 ? undefined : parseJsonObject(text.slice(start, text.lastIndexOf('}') + 1))
}

/** The value if it is a string, else the empty string. */
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Compares two JSON values; the order of keys does not count. */
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

/** The canonical text of a value: keys sorted by code unit, no spaces, undefined members left out. */
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
