/** The address of this platform as the caller sees it: the one place that builds URLs for callers. */
import type { IncomingHttpHeaders } from 'node:http'

/** `http://host:port`, from the Host header, which the door checks before any route sees the request. */
export const baseUrl = ({ headers }: { headers: IncomingHttpHeaders }): string =>
  `http://${headers.host?.toLowerCase()}`
