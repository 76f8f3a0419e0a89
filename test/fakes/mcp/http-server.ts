/** An MCP server over HTTP on loopback, that lets in one token or none, and can be told to be out of order. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { createMcpServer } from './server-tools.ts'

export interface FakeMcpServer {
  readonly url: string
  /** Of every request, in order. */
  readonly seen: Headers[]
  /** Every request is answered with this status instead. */
  status: number | undefined
  stop(): Promise<void>
}

export async function startMcpServer(token?: string): Promise<FakeMcpServer> {
  const handler = createMcpHandler(createMcpServer)
  const http: FakeMcpServer = { url: '', seen: [], status: undefined, stop }
  const answer = (request: Request): Response | Promise<Response> => {
    http.seen.push(request.headers)
    if (http.status !== undefined) return new Response('out of order', { status: http.status })
    const isIn = token === undefined || request.headers.get('authorization') === `Bearer ${token}`
    return isIn ? handler.fetch(request) : new Response('who are you', { status: 401 })
  }
  const server = createServer(getRequestListener(answer))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  async function stop() {
    server.closeAllConnections()
    server.close()
    await handler.close?.()
  }
  return Object.assign(http, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` })
}
