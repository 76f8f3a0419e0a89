/**
 * A remote agent that forwards each call to another A2A URL, which may be set later. Its card names itself, because a
 * relay sends credentials only to the origin of its own URL.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface ForwardingAgent {
  readonly url: string
  close(): void
}

const FORWARDED_HEADERS = ['authorization', 'content-type', 'a2a-version']

export async function startForwardingAgent(version: '1.0' | '0.3', target: () => string): Promise<ForwardingAgent> {
  const modern = { supportedInterfaces: [{ url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
  const old = { url: '/rpc', protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' }
  const card = { name: 'next', capabilities: {}, ...(version === '1.0' ? modern : old) }
  const server = createServer(async (request, response) => {
    response.setHeader('Content-Type', 'application/json')
    if (request.method === 'GET') return void response.end(JSON.stringify(card))
    const headers = FORWARDED_HEADERS.map((name) => [name, String(request.headers[name] ?? '')] as [string, string])
    const answer = await fetch(target(), { method: 'POST', headers, body: await text(request) })
    response.writeHead(answer.status).end(await answer.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
