/** Where this platform is reached, as the one who asks sees it: the one place that builds addresses for others. */
import type { IncomingMessage } from 'node:http'

/** `http://host:port`, from the Host header, which the door has checked before any route sees the request. */
export function baseUrl({ headers, socket }: IncomingMessage): string {
  const scheme = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'
  return `${scheme}://${headers.host?.toLowerCase()}`
}
