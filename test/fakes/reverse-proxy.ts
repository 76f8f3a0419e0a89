/**
 * A reverse proxy in front of a platform, as nginx and Caddy are one: requests and upgrades go on to one target. It keeps
 * the Host of the caller or writes that of its target, and adds the `X-Forwarded-*` headers that the test names.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface ReverseProxyOptions {
  readonly target: string
  /** `rewritten` is what nginx does without `proxy_set_header Host $host`. */
  readonly host: 'kept' | 'rewritten'
  /** Headers that the proxy sets. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The URL of the proxy, which ends with the test. */
export async function startReverseProxy(t: TestContext, options: ReverseProxyOptions): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((incoming, outgoing) => {
    const onward = passOn(incoming, options).on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  server.on('upgrade', (incoming, caller: Socket) => {
    const onward = passOn(incoming, options)
    onward.on('error', () => caller.destroy())
    onward.on('response', (answer) => {
      caller.write(headOf(answer))
      answer.pipe(caller)
    })
    onward.on('upgrade', (answer, platform) => {
      caller.write(headOf(answer))
      platform.pipe(caller).on('error', () => platform.destroy())
      caller.pipe(platform).on('error', () => caller.destroy())
    })
    onward.end()
  })
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function passOn(incoming: IncomingMessage, { target, host, headers = {} }: ReverseProxyOptions) {
  const own = { ...incoming.headers, ...headers, ...(host === 'rewritten' && { host: new URL(target).host }) }
  return request(target + incoming.url, { method: incoming.method, headers: own, agent: false })
}

function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []))
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n')
}
