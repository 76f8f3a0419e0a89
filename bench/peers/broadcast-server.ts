/**
 * The peer of `bench/fanout.ts` and `bench/workspaces.ts`: bare `node:http`. It sends the body of a POST to every reader of
 * `GET /events`, and writes the list of the last PUT as JSON for each `GET /list`. It prints its port when it listens.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const readers = new Set<ServerResponse>()
let list: unknown = []
let events = 0

const server = createServer(async (request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    readers.add(response)
    response.once('close', () => readers.delete(response))
    return
  }
  if (request.url === '/list' && request.method === 'GET') {
    response.setHeader('Content-Type', 'application/json')
    return void response.end(JSON.stringify(list))
  }
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  if (request.method === 'PUT') list = JSON.parse(body)
  else for (const reader of readers) reader.write(`id: ${++events}\ndata: ${body}\n\n`)
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
