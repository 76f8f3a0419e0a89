/**
 * W3C trace context: the `traceparent` and `tracestate` of a request are stored with its message and given to the agent,
 * to what it delegates, and to webhooks, so that the caller's trace continues there. An invalid header is ignored.
 */

export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** Reads the headers of a request, or values of those names from elsewhere. A state without a parent means nothing. */
export function readTraceContext(given: Readonly<Record<string, unknown>>): TraceContext | undefined {
  const traceparent = readTraceparent(given['traceparent'])
  if (traceparent === undefined) return undefined
  const tracestate = readTracestate(given['tracestate'])
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate }
}

/** The variables that OpenTelemetry's tools read. */
export const traceVariables = ({ traceparent, tracestate }: TraceContext): Record<string, string> => ({
  TRACEPARENT: traceparent,
  ...(tracestate !== undefined && { TRACESTATE: tracestate }),
})

export const traceFromVariables = (env: Readonly<Record<string, string | undefined>>): TraceContext | undefined =>
  readTraceContext({ traceparent: env['TRACEPARENT'], tracestate: env['TRACESTATE'] })

/** The standard asks to pass on at least so much; a longer one is dropped. */
const TRACESTATE_CHARACTERS_MAX = 512

/** Vendors' own values, passed on as they are. It becomes a header again, so it must be plain text in one line. */
function readTracestate(header: unknown): string | undefined {
  if (typeof header !== 'string' || header.length > TRACESTATE_CHARACTERS_MAX) return undefined
  return /^[\x20-\x7e]+$/.test(header) && header.trim() !== '' ? header.trim() : undefined
}

/** Version, trace, parent and flags. Later versions may add fields after the flags; those are dropped. */
const TRACEPARENT = /^([0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2})(-.{0,200})?$/

function readTraceparent(header: unknown): string | undefined {
  if (typeof header !== 'string') return undefined
  const [, known, trace, parent, more] = TRACEPARENT.exec(header) ?? []
  if (known === undefined || known.startsWith('ff') || isZero(trace) || isZero(parent)) return undefined
  // Version 00 has nothing after its flags.
  return known.startsWith('00') && more !== undefined ? undefined : known
}

const isZero = (digits = ''): boolean => /^0+$/.test(digits)
