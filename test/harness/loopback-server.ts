/** A server on loopback that records its requests and ends with the test. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export async function serve(t: TestContext, answer: RequestListener) {
  const visits: IncomingMessage[] = []
  const server = createServer((request, response) => {
    visits.push(request)
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, visits, server, url: `http://127.0.0.1:${port}` }
}
