/**
 * Tells public IP addresses from internal ones (loopback, private, link-local, ...), which an untrusted URL must not
 * reach.
 * Invariant: an address that is not known to be public is refused, and an IPv4 address gets the same answer in every
 * IPv6 spelling.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'
import { MoleculeError } from '../errors.ts'

/** The internal ranges with the reason for the error. The first match counts. */
const NON_PUBLIC_RANGES: readonly (readonly [reason: string, ranges: readonly string[]])[] = [
  ['an unspecified address', ['0.0.0.0/8', '::/128']],
  ['a loopback address', ['127.0.0.0/8', '::1/128']],
  ['a link-local address, where clouds keep their metadata', ['169.254.0.0/16', 'fe80::/10']],
  ['a private address', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10']],
  ['an internal address of a carrier or cloud', ['100.64.0.0/10', '168.63.129.16/32', '192.0.0.0/24']],
  ['a multicast or broadcast address', ['224.0.0.0/4', '255.255.255.255/32', 'ff00::/8']],
  [
    'a reserved address',
    ['192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  ],
  // IPv6 forms of IPv4 addresses that a gateway may translate (NAT64, 6to4, Teredo, compatible), and documentation.
  [
    'a reserved address',
    ['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
  ],
]

const nonPublicLists = NON_PUBLIC_RANGES.map(([reason, ranges]) => ({ reason, list: blockListOf(ranges) }))
/** The public range of IPv6; every other range is reserved. */
const GLOBAL_IPV6 = blockListOf(['2000::/3'])
const MAPPED_IPV4 = /^::ffff:[0-9a-f]{1,4}:[0-9a-f]{1,4}$/i

/** Why this address is not public; undefined for a public one. */
export function nonPublicReason(address: string): string | undefined {
  const family = isIP(address)
  if (family === 0) return 'not an address'
  const plain = address.split('%', 1)[0] ?? address
  const found = nonPublicLists.find(({ list }) => list.check(plain, family === 6 ? 'ipv6' : 'ipv4'))
  if (found !== undefined) return found.reason
  if (family === 4 || isMapped(plain) || GLOBAL_IPV6.check(plain, 'ipv6')) return undefined
  return 'a reserved address'
}

/** `::ffff:a.b.c.d` in any spelling. The lists above have already checked it by the IPv4 rules. */
function isMapped(address: string): boolean {
  return MAPPED_IPV4.test(new URL(`http://[${address}]/`).hostname.slice(1, -1))
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
  const list = blockListOf(ranges)
  return {
    allowsName: (name) => names.has(name.toLowerCase().replace(/\.$/, '')),
    allowsAddress: (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
  }
}

/** Addresses and ranges, of which the caller has checked that they are some. */
export interface AddressRanges {
  includes(address: string): boolean
}

export function createAddressRanges(ranges: readonly string[]): AddressRanges {
  const list = blockListOf(ranges)
  return { includes: (address) => isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4') }
}

function isRange(text: string): boolean {
  const [address = '', bits] = text.split('/')
  const family = isIP(address)
  if (family === 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))
}

const isName = (text: string): boolean =>
  /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_-]+)*$/.test(text) && !/^[\d.]+$/.test(text)

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return list
}
