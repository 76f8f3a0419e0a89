import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { createPlatformConnection } from './platform-connection.ts'

const LIMIT = 64 * 1024 * 1024

test('an answer to a bridge has at most 64 MiB, and a larger one is a final error', async (t) => {
  const body = Buffer.alloc(LIMIT + 1, ' ')
  body.write('{}')
  const server = createServer((request, response) => {
    response.end(request.url === '/larger' ? body : body.subarray(0, LIMIT))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const backoffs: unknown[] = []
  const connection = createPlatformConnection({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clock: manualClock(),
    token: () => 'x',
    onBackoff: (error) => backoffs.push(error),
  })
  t.after(() => {
    connection.close()
    server.closeAllConnections()
    server.close()
  })
  const call = { body: {}, timeoutMs: 100_000 }
  assert.deepEqual(await connection.post('/', call), {})
  const message = 'the answer of the platform is larger than 64 MiB'
  await assert.rejects(connection.post('/larger', call), { code: 'too_large', retryable: false, message })
  assert.deepEqual(backoffs, [])
})
