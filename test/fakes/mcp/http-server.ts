/** An MCP server over HTTP on loopback. It may require a token, and a test can make it fail. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { createMcpServer } from './server-tools.ts'

export interface FakeMcpServer {
  readonly url: string
  /** The headers of every request, in order. */
  readonly seen: Headers[]
  /** When set, every request fails with this status. */
  status: number | undefined
  stop(): Promise<void>
}

export async function startMcpServer(token?: string): Promise<FakeMcpServer> {
  const handler = createMcpHandler(createMcpServer)
  const http: FakeMcpServer = { url: '', seen: [], status: undefined, stop }
  const answer = (request: Request): Response | Promise<Response> => {
    http.seen.push(request.headers)
    if (http.status !== undefined) return new Response('out of order', { status: http.status })
    const isAllowed = token === undefined || request.headers.get('authorization') === `Bearer ${token}`
    return isAllowed ? handler.fetch(request) : new Response('unauthorized', { status: 401 })
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
