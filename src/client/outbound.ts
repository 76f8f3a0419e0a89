/**
 * Requests to URLs that others gave us: webhooks, files, remote agents. The name is resolved here, every address of it
 * is judged, and the connection goes to the judged addresses and no others, so that a name that answers differently the
 * second time gains nothing. Redirects are followed by hand and each hop is judged again.
 * Invariant: unless `trusted` or allowed by the owner, nothing inside is reached, and what is refused says why.
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
  /** Host names, addresses and ranges that may be reached though they are inside. */
  readonly allow?: readonly string[]
  /** All addresses of a name; the system's resolver where unset. */
  readonly resolve?: (name: string) => Promise<readonly ResolvedAddress[]>
}

export interface OutboundRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST'
  /** They go to the origin of `url` alone; a redirect elsewhere is followed without them. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The URL is an admin's own word: its host may be inside. Where a redirect leads is not the admin's word. */
  readonly trusted?: boolean
  /** From the request to the head of the answer. */
  readonly headersMs?: number
  /** For everything, the answer's body included; no limit where unset, which is for streams. */
  readonly totalMs?: number
  readonly bytesMax?: number
}

export interface Outbound {
  /** Judges a URL without asking it anything; throws `forbidden` with the reason. */
  check(url: string): Promise<void>
  send(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundResponse>
}

const REDIRECTS_MAX = 3
const HEADERS_MS = 15_000
export const ANSWER_BYTES_MAX = 10 * 1024 * 1024

export function createOutbound({ allow = [], resolve = systemResolve }: OutboundOptions = {}): Outbound {
  const checkAddresses = createAddressCheck(createAllowList(allow), resolve)
  return {
    async check(url) {
      await checkAddresses(readUrl(url), false)
    },
    async send(request, signal) {
      const limit = request.totalMs === undefined ? undefined : AbortSignal.timeout(request.totalMs)
      const ends = AbortSignal.any([signal, limit].filter((each) => each !== undefined))
      const given = readUrl(request.url)
      let url = given
      let { headers = {} } = request
      for (let hops = 0; ; hops++) {
        const trusted = request.trusted === true && url.hostname === given.hostname
        const addresses = await checkAddresses(url, trusted)
        const answer = await dial(toDialOptions(request, { url, headers, addresses }), ends)
        const next = redirectOf(answer, request.method ?? 'GET')
        if (next === undefined) return answer
        answer.discard()
        if (hops === REDIRECTS_MAX) throw refusedUrl(request.url, `it leads on more than ${REDIRECTS_MAX} times`)
        const target = readUrl(next, url)
        // Whoever answers for one origin has no say over where our credentials go.
        if (target.origin !== url.origin) headers = withoutCredentials(headers)
        url = target
      }
    },
  }
}

function toDialOptions(
  request: OutboundRequest,
  hop: Pick<DialOptions, 'url' | 'headers'> & { readonly addresses: readonly ResolvedAddress[] },
): DialOptions {
  const { method = 'GET', body, headersMs = HEADERS_MS, bytesMax = ANSWER_BYTES_MAX } = request
  const { url, headers, addresses } = hop
  return { url, headers, method, body, headersMs, bytesMax, lookup: pinnedLookup(addresses) }
}

/** Answers with the judged addresses whatever it is asked: this is what pins the connection. */
function pinnedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_name, options, callback) => {
    const [first] = addresses
    if (options.all === true) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family)
  }
}

/** Only http and https, and no password in the URL, which would end up in logs. */
function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw refusedUrl(text, 'it is not a URL')
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refusedUrl(text, 'it is neither http nor https')
  if (url.username !== '' || url.password !== '') throw refusedUrl(url.host, 'it has a user name or password in it')
  return url
}

type AddressCheck = (url: URL, trusted: boolean) => Promise<readonly ResolvedAddress[]>

function createAddressCheck(allowed: AllowList, resolve: NonNullable<OutboundOptions['resolve']>): AddressCheck {
  return async (url, trusted) => {
    const name = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = await addressesOf(name, resolve)
    if (trusted || allowed.allowsName(name)) return addresses
    // All of them: the connection may go to any, and one public address must not vouch for a private one.
    for (const { address } of addresses) {
      const reason = allowed.allowsAddress(address) ? undefined : nonPublicReason(address)
      if (reason === undefined) continue
      const subject = address === name ? `${address} is` : `${name} is at ${address},`
      throw refusedUrl(url.href, `${subject} ${reason}; the platform's owner can allow it with --allow-outbound`)
    }
    return addresses
  }
}

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
    throw new MoleculeError('timeout', `the name ${name} cannot be resolved (${code})`, { retryable: true, cause })
  }
  if (addresses.length > 0) return addresses
  throw new MoleculeError('timeout', `the name ${name} has no address`, { retryable: true })
}

async function systemResolve(name: string): Promise<ResolvedAddress[]> {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address, family }) => ({ address, family: family as 4 | 6 }))
}

/** A POST is repeated only where the answer says that it must stay one. */
function redirectOf({ status, headers }: OutboundResponse, method: string): string | undefined {
  const follows = status === 307 || status === 308 || (method === 'GET' && [301, 302, 303].includes(status))
  return follows ? headers.location : undefined
}

const HARMLESS_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'a2a-version', 'a2a-extensions'])

function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => HARMLESS_HEADERS.has(name.toLowerCase())))
}

function refusedUrl(url: string, reason: string): MoleculeError {
  return new MoleculeError('forbidden', `the URL ${url} is refused: ${reason}`, { details: { reason } })
}
