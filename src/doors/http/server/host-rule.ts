/**
 * Checks the Host header before anything else, against DNS rebinding: a foreign page can make its own name resolve to
 * 127.0.0.1 and then reach this platform as "same origin". The browser still sends the foreign name as Host.
 */
import { isIP } from 'node:net'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
const WILDCARD_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** True for a Host header that names this platform, with any port. */
export type HostRule = (host: string | undefined) => boolean

/** `publicHosts` are those of the public URLs, with or without a port. */
export function createHostRule(boundHost: string, publicHosts: readonly string[] = []): HostRule {
  const own = (isIP(boundHost) === 6 ? `[${boundHost}]` : boundHost).toLowerCase()
  const publicNames = new Set(publicHosts.map(hostName))
  const anyAddress = WILDCARD_ADDRESSES.has(boundHost)
  return (host) => {
    const name = hostName(host)
    if (name === undefined) return false
    if (LOOPBACK_NAMES.has(name) || name === own || publicNames.has(name)) return true
    // Bound to every address, the platform accepts any address: an address, unlike a name, cannot be rebound.
    return anyAddress && isAddress(name)
  }
}

/** Lower case, without the port: `localhost`, `127.0.0.1`, `[::1]`. Undefined for an invalid header. */
export function hostName(host: string | undefined): string | undefined {
  return /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.exec(host?.toLowerCase() ?? '')?.[1]
}

function isAddress(name: string): boolean {
  return isIP(name.startsWith('[') ? name.slice(1, -1) : name) !== 0
}
