/**
 * A proxy between a bridge and its platform with the faults of networks: it loses responses, swallows requests, goes
 * silent, cuts connections, or answers itself as a busy proxy would.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** lose: the request arrives, its response does not. swallow: the request never arrives, without an error. */
export type ProxyAction = 'pass' | 'lose' | 'swallow' | { readonly answer: string }

export interface TcpProxy {
  readonly url: string
  /** Sets the function that decides on each request by its first line. */
  rule(decide: (requestLine: string) => ProxyAction): void
  /** Open connections transfer nothing more, without an error; new connections work. */
  silence(): void
  /** Closes every open connection. */
  cut(): void
  close(): Promise<void>
}

export async function startProxy(targetUrl: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(targetUrl)
  const pairs = new Set<SocketPair>()
  let decide: (requestLine: string) => ProxyAction = () => 'pass'
  const server = createServer((inner) => {
    const pair: SocketPair = { inner, outer: connect(Number(port), hostname), silent: false, loses: false }
    pairs.add(pair)
    connectPair(pair, (line) => decide(line))
    inner.on('close', () => pairs.delete(pair))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const { inner, outer } of pairs) for (const socket of [inner, outer]) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    rule: (rule) => {
      decide = rule
    },
    silence() {
      for (const pair of pairs) pair.silent = true
    },
    cut,
    async close() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}

interface SocketPair {
  readonly inner: Socket
  readonly outer: Socket
  silent: boolean
  loses: boolean
}

function connectPair(pair: SocketPair, decide: (requestLine: string) => ProxyAction): void {
  const { inner, outer } = pair
  const end = () => {
    // In a silent network neither side learns that the other has closed.
    if (pair.silent) return
    inner.destroy()
    outer.destroy()
  }
  for (const socket of [inner, outer]) socket.on('error', end).on('close', end)
  inner.on('data', (chunk) => {
    if (pair.silent) return
    const line = /^[A-Z]+ \S+ HTTP/.exec(chunk.toString('latin1', 0, 500))?.[0]
    const action = line === undefined ? 'pass' : decide(line)
    if (action === 'lose') pair.loses = true
    if (action === 'pass' || action === 'lose') outer.write(chunk)
    else if (action !== 'swallow') inner.write(action.answer)
  })
  outer.on('data', (chunk) => {
    if (pair.loses) end()
    else if (!pair.silent) inner.write(chunk)
  })
}
