/** The address of this platform as the caller sees it: the one place that builds URLs for callers. */
import type { IncomingMessage } from 'node:http'

/** `http://host:port`, from the Host header, which the door checks before any route sees the request. */
export function baseUrl({ headers, socket }: IncomingMessage): string {
  const scheme = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'
  return `${scheme}://${headers.host?.toLowerCase()}`
}
