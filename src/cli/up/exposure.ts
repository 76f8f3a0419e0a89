/** Says what a platform that other machines can reach exposes. It has no TLS of its own. */
import type { PlatformConfig } from '../../config/config.ts'

/** The warning for these settings; undefined for loopback, and behind https. */
export function exposureWarning({ host, publicUrls }: Pick<PlatformConfig, 'host' | 'publicUrls'>): string | undefined {
  if (host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)) return undefined
  if (publicUrls[0]?.startsWith('https:')) return undefined
  return `other machines can reach this platform (--host ${host}), and without https anybody on the way can read tokens and messages. Put a reverse proxy with https in front of it and name it with --public-url, or listen on 127.0.0.1`
}
