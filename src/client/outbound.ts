/**
 * Requests to URLs from outside: webhooks, files, remote agents. It resolves the name, checks every address of it, and
 * connects only to the checked addresses, so that DNS rebinding gains nothing. It follows redirects itself and checks
 * each hop. Invariant: no internal address is reached, unless the URL is `trusted` or the owner allows the address.
 */
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { MoleculeError } from '../errors.ts'
import { type DialOptions, dial, type OutboundResponse } from './dial.ts'
import { type AllowList, createAllowList, nonPublicReason } from './ip-addresses.ts'

export interface ResolvedAddress {
  readonly address: string
  readonly family: 4 | 6
}

export interface OutboundOptions {
  /** Internal host names, addresses and ranges that the owner allows. */
  readonly allow?: readonly string[]
  /** Gives all addresses of a name; unset = the system's resolver. */
  readonly resolve?: (name: string) => Promise<readonly ResolvedAddress[]>
}

export interface OutboundRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST'
  /** Sent only to the origin of `url`. A redirect to another origin is followed without credentials. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /**
   * An admin gave the URL, so its host may be internal. That does not hold for the target of a redirect, nor for a public
   * name without TLS: see `mayBeInternal`.
   */
  readonly trusted?: boolean
  /** From the request to the headers of the answer. */
  readonly headersMs?: number
  /** For the whole exchange with its body; unset = no limit, for streams. */
  readonly totalMs?: number
  readonly bytesMax?: number
}

export interface Outbound {
  /**
   * Checks a URL without a request to it. Throws `forbidden` with the reason. A name that cannot be resolved now passes:
   * it may be resolved later, and `send` checks again.
   */
  check(url: string): Promise<void>
  send(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundResponse>
}

const REDIRECTS_MAX = 3
const HEADERS_MS = 15_000
const ANSWER_BYTES_MAX = 10 * 1024 * 1024

export function createOutbound({ allow = [], resolve = systemResolve }: OutboundOptions = {}): Outbound {
  const checkAddresses = createAddressCheck(createAllowList(allow), resolve)
  return {
    async check(url) {
      await checkAddresses(readUrl(url), false).catch((thrown: unknown) => {
        if (!(thrown instanceof MoleculeError) || thrown.code !== UNRESOLVED) throw thrown
      })
    },
    async send(request, signal) {
      const limit = request.totalMs === undefined ? undefined : AbortSignal.timeout(request.totalMs)
      const ends = AbortSignal.any([signal, limit].filter((each) => each !== undefined))
      const given = readUrl(request.url)
      let url = given
      let { headers = {} } = request
      for (let hops = 0; ; hops++) {
        const trusted = request.trusted === true && url.hostname === given.hostname && mayBeInternal(url)
        const addresses = await checkAddresses(url, trusted)
        const answer = await dial(toDialOptions(request, { url, headers, addresses }), ends)
        const next = redirectOf(answer, request.method ?? 'GET')
        if (next === undefined) return answer
        answer.discard()
        if (hops === REDIRECTS_MAX) throw refusedUrl(given.origin, `it redirects more than ${REDIRECTS_MAX} times`)
        const target = readUrl(next, url)
        // Prevents an origin from sending our credentials to another one.
        if (target.origin !== url.origin) headers = withoutCredentials(headers)
        url = target
      }
    },
  }
}

/**
 * Prevents that the owner of a remote agent's name points it to an address inside this network and receives what is sent
 * there. With https the internal server would need a certificate of that name. With http only a host that cannot be
 * public may have an internal address: an address, or a name that the public DNS does not have.
 */
function mayBeInternal({ protocol, hostname }: URL): boolean {
  if (protocol === 'https:' || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return true
  const labels = hostname.replace(/\.$/, '').split('.')
  return labels.length === 1 || hostname.endsWith('.home.arpa') || INTERNAL_DOMAINS.has(labels.at(-1) ?? '')
}

/** Top-level domains that the public DNS never delegates (RFC 6761, RFC 6762, RFC 8375, ICANN), and usual local ones. */
const INTERNAL_DOMAINS: ReadonlySet<string> = new Set('localhost local internal lan home corp test'.split(' '))

function toDialOptions(
  request: OutboundRequest,
  hop: Pick<DialOptions, 'url' | 'headers'> & { readonly addresses: readonly ResolvedAddress[] },
): DialOptions {
  const { method = 'GET', body, headersMs = HEADERS_MS, bytesMax = ANSWER_BYTES_MAX } = request
  const { url, headers, addresses } = hop
  return { url, headers, method, body, headersMs, bytesMax, lookup: pinnedLookup(addresses) }
}

/** Pins the connection: it returns the checked addresses for every name. */
function pinnedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_name, options, callback) => {
    const [first] = addresses
    if (options.all === true) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family)
  }
}

/** Accepts only http and https, and no password in the URL, because logs would show it. */
function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw refusedUrl('', 'it is not a URL')
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refusedUrl(url.protocol, 'it is neither http nor https')
  if (url.username !== '' || url.password !== '') throw refusedUrl(url.host, 'it contains a user name or password')
  return url
}

type AddressCheck = (url: URL, trusted: boolean) => Promise<readonly ResolvedAddress[]>

function createAddressCheck(allowed: AllowList, resolve: NonNullable<OutboundOptions['resolve']>): AddressCheck {
  return async (url, trusted) => {
    const name = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = await addressesOf(name, resolve)
    if (trusted || allowed.allowsName(name)) return addresses
    // Checks all of them, because the connection may use any.
    for (const { address } of addresses) {
      const reason = allowed.allowsAddress(address) ? undefined : nonPublicReason(address)
      if (reason === undefined) continue
      // Prevents that a stranger maps the owner's network: for a name, the sentence tells neither address nor range.
      const problem = address === name ? `${address} is ${reason}` : `${name} does not have a public address`
      throw refusedUrl(url.origin, `${problem}; the platform's owner can allow it with --allow-outbound`)
    }
    return addresses
  }
}

/** The code of the only failure of an address check that is no refusal. */
const UNRESOLVED = 'timeout'

async function addressesOf(
  name: string,
  resolve: NonNullable<OutboundOptions['resolve']>,
): Promise<readonly ResolvedAddress[]> {
  const family = isIP(name)
  if (family !== 0) return [{ address: name, family: family as 4 | 6 }]
  let addresses: readonly ResolvedAddress[]
  try {
    addresses = await resolve(name)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    const details = { unreachable: code }
    throw new MoleculeError(UNRESOLVED, `the name ${name} cannot be resolved (${code})`, {
      retryable: true,
      cause,
      details,
    })
  }
  if (addresses.length > 0) return addresses
  const details = { unreachable: 'ENODATA' }
  throw new MoleculeError(UNRESOLVED, `the name ${name} has no address`, { retryable: true, details })
}

async function systemResolve(name: string): Promise<ResolvedAddress[]> {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address, family }) => ({ address, family: family as 4 | 6 }))
}

/** A POST is redirected only by 307 and 308, which keep the method. */
function redirectOf({ status, headers }: OutboundResponse, method: string): string | undefined {
  const follows = status === 307 || status === 308 || (method === 'GET' && [301, 302, 303].includes(status))
  return follows ? headers.location : undefined
}

const HARMLESS_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'a2a-version', 'a2a-extensions'])

function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => HARMLESS_HEADERS.has(name.toLowerCase())))
}

/** `shown` has no path and no query: they may contain a secret of the caller, and the message is logged. */
function refusedUrl(shown: string, reason: string): MoleculeError {
  const subject = shown === '' ? 'the URL' : `the URL ${shown}`
  return new MoleculeError('forbidden', `${subject} is refused: ${reason}`, { details: { reason } })
}
