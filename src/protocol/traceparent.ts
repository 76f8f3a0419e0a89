/**
 * W3C trace context: the `traceparent` of a request goes with its message through the store to whatever works on it, so
 * that a trace begun outside goes on inside. What is not of the form is as if it were not there; nothing else is read.
 */

/** Version, trace, parent and flags. Later versions may say more behind the flags, which is not passed on. */
const TRACEPARENT = /^([0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2})(-.{0,200})?$/

export function readTraceparent(header: unknown): string | undefined {
  if (typeof header !== 'string') return undefined
  const [, known, trace, parent, more] = TRACEPARENT.exec(header) ?? []
  if (known === undefined || known.startsWith('ff') || isZero(trace) || isZero(parent)) return undefined
  // The first version has nothing behind its flags.
  return known.startsWith('00') && more !== undefined ? undefined : known
}

const isZero = (digits = ''): boolean => /^0+$/.test(digits)
