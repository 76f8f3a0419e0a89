/**
 * W3C trace context: the `traceparent` of a request is stored with its message and given to the agent, so that the
 * caller's trace continues in the turn. An invalid header is ignored.
 */

/** Version, trace, parent and flags. Later versions may add fields after the flags; those are dropped. */
const TRACEPARENT = /^([0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2})(-.{0,200})?$/

export function readTraceparent(header: unknown): string | undefined {
  if (typeof header !== 'string') return undefined
  const [, known, trace, parent, more] = TRACEPARENT.exec(header) ?? []
  if (known === undefined || known.startsWith('ff') || isZero(trace) || isZero(parent)) return undefined
  // Version 00 has nothing after its flags.
  return known.startsWith('00') && more !== undefined ? undefined : known
}

const isZero = (digits = ''): boolean => /^0+$/.test(digits)
