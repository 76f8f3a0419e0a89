/**
 * The Host header, checked before anything else. A page of a stranger can make its own name resolve to 127.0.0.1 and
 * then talk to this platform as "its own origin" (DNS rebinding); the browser still sends the stranger's name as Host.
 */
import { isIP } from 'node:net'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
const WILDCARD_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** True for a Host header that names this platform, with any port. */
export type HostRule = (host: string | undefined) => boolean

export function createHostRule(boundHost: string): HostRule {
  const own = (isIP(boundHost) === 6 ? `[${boundHost}]` : boundHost).toLowerCase()
  const anyAddress = WILDCARD_ADDRESSES.has(boundHost)
  return (host) => {
    const name = hostName(host)
    if (name === undefined) return false
    // Bound to every address, it is reached by addresses nobody can list; one that is no name cannot be rebound.
    return LOOPBACK_NAMES.has(name) || name === own || (anyAddress && isAddress(name))
  }
}

/** Lower case, without the port: `localhost`, `127.0.0.1`, `[::1]`. Undefined for what is no host. */
function hostName(host: string | undefined): string | undefined {
  return /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.exec(host?.toLowerCase() ?? '')?.[1]
}

function isAddress(name: string): boolean {
  return isIP(name.startsWith('[') ? name.slice(1, -1) : name) !== 0
}
