/**
 * Stands between a bridge and its platform and behaves as networks do: loses answers, swallows requests, goes silent,
 * breaks off, or answers itself as a busy proxy would.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** lose: the request arrives, its answer does not. swallow: it never arrives and nobody says so. */
export type ProxyAction = 'pass' | 'lose' | 'swallow' | { readonly answer: string }

export interface TcpProxy {
  readonly url: string
  /** Decides on each request by its first line; once replaced, for good. */
  rule(decide: (requestLine: string) => ProxyAction): void
  /** Nothing more comes through on the connections that are open; new ones work. */
  silence(): void
  /** Breaks every open connection. */
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
    // A silent network does not tell either side that the other has gone.
    if (pair.silent) return
    inner.destroy()
    outer.destroy()
  }
  for (const socket of [inner, outer]) socket.on('error', end).on('close', end)
  inner.on('data', (chunk) => {
    if (pair.silent) return
    const line = /^[A-Z]+ \S+ HTTP/.exec(chunk.toString('latin1', 0, 500))?.[0]
    const fate = line === undefined ? 'pass' : decide(line)
    if (fate === 'lose') pair.loses = true
    if (fate === 'pass' || fate === 'lose') outer.write(chunk)
    else if (fate !== 'swallow') inner.write(fate.answer)
  })
  outer.on('data', (chunk) => {
    if (pair.loses) end()
    else if (!pair.silent) inner.write(chunk)
  })
}
