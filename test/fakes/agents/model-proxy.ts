/** A proxy on loopback before a fake model. Each user of it decides what to change. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export interface ModelProxy {
  readonly url: string
  stop(): Promise<void>
}

export interface ProxyCall {
  readonly request: IncomingMessage
  readonly body: string
  readonly response: ServerResponse
}

export async function startModelProxy(answer: (call: ProxyCall) => Promise<void>): Promise<ModelProxy> {
  const server = createServer((request, response) => {
    // The client may disconnect during the response; that is no error.
    readBody(request)
      .then((body) => answer({ request, body, response }))
      .catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

type Change = (chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array | string>

/** Sends the request to the target and passes the answer back, changed. */
export async function passOn(
  target: string,
  { request, body, response }: ProxyCall,
  change: Change = (chunks) => chunks,
): Promise<void> {
  const disconnect = new AbortController()
  response.on('close', () => disconnect.abort())
  const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers
  const answer = await fetch(`${target}${request.url}`, {
    method: request.method ?? 'GET',
    headers: headers as Record<string, string>,
    ...(body !== '' && { body }),
    signal: disconnect.signal,
  })
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) return void response.end()
  await pipeline(Readable.fromWeb(answer.body), change, response)
}
