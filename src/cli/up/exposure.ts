/** Says what a platform that other machines can reach exposes. There is no TLS and no public URL yet. */

/** The warning for this `--host`; undefined for loopback. */
export function exposureWarning(host: string): string | undefined {
  if (host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)) return undefined
  return `other machines can reach this platform (--host ${host}), and without https anybody on the way can read tokens and messages. Put a reverse proxy with https in front of it, or listen on 127.0.0.1`
}
