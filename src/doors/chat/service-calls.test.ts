import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { downloadFile } from './service-calls.ts'

test('GW-13 a download that never ends fails in time, although bytes still arrive', async (t) => {
  const server = createServer((_request, response) => {
    const drip = setInterval(() => response.write('x'), 10)
    response.on('close', () => clearInterval(drip))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`
  const options = { bytesMax: 1_000_000, service: 'Chat', timeoutMs: 200 }
  await assert.rejects(downloadFile(url, options, new AbortController().signal), {
    code: 'provider_unreachable',
    retryable: true,
    message: 'the file could not be downloaded from Chat: it takes too long',
  })
})
