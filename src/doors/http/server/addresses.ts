/**
 * The addresses of a request: the name by which the caller reaches this platform, the page that sent the request, and the
 * machine that it comes from. The public URLs of the owner count as names of the platform. Headers of a proxy
 * (`X-Forwarded-*`) count only when the request comes from a proxy that the owner trusts: any caller can send them.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { type AddressRanges, createAddressRanges } from '../../../client/ip-addresses.ts'
import { MoleculeError } from '../../../errors.ts'
import { createHostRule, hostName } from './host-rule.ts'

/** What the addresses are read from. */
export interface AddressedRequest {
  readonly headers: IncomingHttpHeaders
  readonly socket?: { readonly remoteAddress?: string | undefined }
}

export interface Addresses {
  /** The first one of the owner; undefined without one. */
  readonly publicUrl: string | undefined
  /** Whether the Host header names this platform. Checked before anything else of a request. */
  isOurHost(request: AddressedRequest): boolean
  /** The error for a Host that is not ours. It names the setting: the platform cannot know that the name is its own. */
  unknownHost(request: AddressedRequest): MoleculeError
  /** Whether a page of this platform sent the request; false without an Origin. */
  hasOwnOrigin(request: AddressedRequest): boolean
  /** `https://name`: where other machines reach this platform. The first public URL, else the one that the caller used. */
  baseUrl(request: AddressedRequest): string
  /** Whether a browser that sent this request keeps a cookie that is only for https. */
  isHttps(request: AddressedRequest): boolean
  /** The IP address of the caller; a trusted proxy names it. */
  callerAddress(request: AddressedRequest): string
}

export interface AddressesOptions {
  /** The address on which the platform listens. */
  readonly host: string
  /** Origins such as `https://name`; the first one is shown to callers. */
  readonly publicUrls?: readonly string[]
  /** Addresses and ranges of proxies. */
  readonly trustedProxies?: readonly string[]
}

export function createAddresses({ host, publicUrls = [], trustedProxies = [] }: AddressesOptions): Addresses {
  const proxies = createAddressRanges(trustedProxies)
  const isOurName = createHostRule(
    host,
    publicUrls.map((url) => new URL(url).host),
  )
  /** The last value is of the nearest proxy; the ones before it may be of the caller. */
  const forwarded = ({ headers, socket }: AddressedRequest, name: 'x-forwarded-host' | 'x-forwarded-proto') =>
    proxies.includes(socket?.remoteAddress ?? '') ? valuesOf(headers[name]).at(-1)?.toLowerCase() : undefined
  const hostOf = (request: AddressedRequest) =>
    forwarded(request, 'x-forwarded-host') ?? request.headers.host?.toLowerCase()
  const baseUrl = (request: AddressedRequest) => {
    const scheme = forwarded(request, 'x-forwarded-proto') === 'https' ? 'https' : 'http'
    return publicUrls[0] ?? `${scheme}://${hostOf(request)}`
  }
  return {
    publicUrl: publicUrls[0],
    isOurHost: (request) => isOurName(hostOf(request)),
    unknownHost: (request) => unknownHost(hostOf(request) ?? ''),
    hasOwnOrigin(request) {
      const origin = originOf(request)
      return origin !== undefined && (origin.host === hostOf(request) || publicUrls.includes(origin.origin))
    },
    baseUrl,
    isHttps: (request) => (originOf(request) ?? new URL(baseUrl(request))).protocol === 'https:',
    callerAddress: (request) => callerOf(request, proxies),
  }
}

function unknownHost(host: string): MoleculeError {
  // A Host with a port is that of a caller without a proxy.
  const scheme = host.includes(':') ? 'http' : 'https'
  const url = hostName(host) === undefined ? '<url>' : `${scheme}://${host}`
  const message = `${JSON.stringify(host)} is not a name of this platform; use localhost or its address, or start it with --public-url ${url}`
  return new MoleculeError('forbidden', message, { details: { hint: PUBLIC_URL_HINT } })
}

export const PUBLIC_URL_HINT =
  'the owner sets it with --public-url, MOLECULE_PUBLIC_URL, or "molecule config set public-url <url>"'

/** Walks back from the nearest proxy: the first address that is no trusted proxy is the caller. */
function callerOf({ headers, socket }: AddressedRequest, proxies: AddressRanges): string {
  const direct = socket?.remoteAddress ?? ''
  if (!proxies.includes(direct)) return direct
  const path = valuesOf(headers['x-forwarded-for'])
  return path.findLast((address) => !proxies.includes(address)) ?? path[0] ?? direct
}

const valuesOf = (header: string | string[] | undefined): string[] =>
  String(header ?? '')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')

/** Undefined for `null`, for text that is no origin, and for one without a host. */
function originOf({ headers: { origin } }: AddressedRequest): URL | undefined {
  if (origin === undefined || !URL.canParse(origin)) return undefined
  const url = new URL(origin)
  return url.host === '' ? undefined : url
}
