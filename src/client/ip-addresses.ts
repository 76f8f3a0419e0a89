/**
 * Tells public IP addresses from internal ones (loopback, private, link-local, ...), which an untrusted URL must not
 * reach.
 * Invariant: an address that is not known to be public is refused, and an IPv4 address gets the same answer in every
 * IPv6 spelling.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { MoleculeError } from '../errors.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
/** IPv4 ranges too are written in IPv6, so `::/0` has all addresses. */
type AddressRange = readonly [first: ipaddr.IPv6, bits: number]

/** The ranges of ipaddr.js with the reason for the error. Every other range but `unicast` is reserved. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['unspecified', 'an unspecified address'],
  ['loopback', 'a loopback address'],
  ['linkLocal', 'a link-local address, where clouds keep their metadata'],
  ['private', 'a private address'],
  ['uniqueLocal', 'a private address'],
  ['deprecatedSiteLocal', 'a private address'],
  ['carrierGradeNat', 'an internal address of a carrier or cloud'],
  ['multicast', 'a multicast or broadcast address'],
  ['broadcast', 'a multicast or broadcast address'],
])
/** Addresses at which clouds serve their machines; the first one is in no range that is reserved for such use. */
const CLOUD_RANGES = readRanges(['168.63.129.16', '192.0.0.0/24'])
/** The public range of IPv6: ipaddr.js takes an address outside of it for `unicast` too. */
const GLOBAL_IPV6 = readRanges(['2000::/3'])

/** Why this address is not public; undefined for a public one. */
export function nonPublicReason(text: string): string | undefined {
  if (isIP(text) === 0) return 'not an address'
  const address = readAddress(text)
  if (isInRanges(address, CLOUD_RANGES)) return REASONS.get('carrierGradeNat')
  const range: string = address.range()
  if (range !== 'unicast') return REASONS.get(range) ?? 'a reserved address'
  return address.kind() === 'ipv4' || isInRanges(address, GLOBAL_IPV6) ? undefined : 'a reserved address'
}

/** Internal names and ranges that the owner allows. */
export interface AllowList {
  allowsName(name: string): boolean
  allowsAddress(address: string): boolean
}

/** Entries are host names, addresses or ranges (`10.0.0.0/8`). Throws `bad_config` for any other entry. */
export function createAllowList(entries: readonly string[]): AllowList {
  const names = new Set<string>()
  const ranges: string[] = []
  for (const entry of entries.map((text) => text.trim().toLowerCase()).filter((text) => text !== '')) {
    if (isRange(entry)) ranges.push(entry)
    else if (isName(entry)) names.add(entry)
    else throw new MoleculeError('bad_config', `allow-outbound: "${entry}" is neither a host name nor a range`)
  }
  const { includes } = createAddressRanges(ranges)
  return {
    allowsName: (name) => names.has(name.toLowerCase().replace(/\.$/, '')),
    allowsAddress: includes,
  }
}

/** Addresses and ranges, of which the caller has checked that they are some. */
export interface AddressRanges {
  includes(address: string): boolean
}

export function createAddressRanges(ranges: readonly string[]): AddressRanges {
  const list = readRanges(ranges)
  return { includes: (text) => list.length > 0 && isIP(text) !== 0 && isInRanges(readAddress(text), list) }
}

function isRange(text: string): boolean {
  const [address = '', bits] = text.split('/')
  const family = isIP(address)
  if (family === 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))
}

const isName = (text: string): boolean =>
  /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_-]+)*$/.test(text) && !/^[\d.]+$/.test(text)

/** An address of either family, for which `isIP` is true: ipaddr.js alone also reads `0177.1`. Mapped IPv4 becomes IPv4. */
function readAddress(text: string): Address {
  const [plain = ''] = text.split('%', 1)
  return ipaddr.process(plain.includes(':') ? normalIpv6(plain) : plain)
}

/** Prevents that the IPv4-compatible `::1.2.3.4` counts as 1.2.3.4: ipaddr.js takes that spelling for the mapped one. */
function normalIpv6(text: string): string {
  return new URL(`http://[${text}]/`).hostname.slice(1, -1)
}

function readRanges(ranges: readonly string[]): readonly AddressRange[] {
  return ranges.map((range) => {
    const [text = '', bits = 128] = range.split('/')
    const skipped = text.includes(':') || bits === 128 ? 0 : 96
    return [toIpv6(readAddress(text)), skipped + Number(bits)]
  })
}

function isInRanges(address: Address, ranges: readonly AddressRange[]): boolean {
  return ranges.some(([first, bits]) => toIpv6(address).match(first, bits))
}

function toIpv6(address: Address): ipaddr.IPv6 {
  return 'octets' in address ? address.toIPv4MappedAddress() : address
}
