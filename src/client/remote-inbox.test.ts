import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { systemClock } from '../clock.ts'
import type { Directive } from '../inbox/inbox.ts'
import { silentLog } from '../log.ts'
import { createPlatformConnection } from './platform-connection.ts'
import { createRemoteInbox } from './remote-inbox.ts'

test('CN-6 stop and answer directives of a poll reach the turns of the bridge, in order', async (t) => {
  const key = { workspaceId: 'ws_1', conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const sent = [
    { type: 'answer', key, askId: 'a', parts: [{ text: 'yes' }] },
    { type: 'stop', key },
  ]
  let polls = 0
  // Only the first poll has an answer; the second stays open like that of an idle platform.
  const server = createServer((_request, response) => {
    if (polls++ === 0) response.setHeader('X-Request-Id', 'r').end(JSON.stringify({ handouts: sent }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connection = createPlatformConnection({ url, token: () => 'x', clock: systemClock, onBackoff: () => undefined })
  t.after(() => {
    connection.close()
    server.closeAllConnections()
    server.close()
  })
  const inbox = createRemoteInbox({
    ...{ connection, workspaceId: 'ws_1', host: 'here', backend: 'mock', concurrency: 1 },
    ...{ startedText: 'started', log: silentLog },
  })
  const stop = new AbortController()
  const received: Directive[] = []
  const limit = AbortSignal.any([stop.signal, AbortSignal.timeout(10_000)])
  for await (const directive of inbox.leases({ id: 'worker' } as Parameters<typeof inbox.leases>[0], limit)) {
    received.push(directive)
    if (received.length === sent.length) stop.abort()
  }
  assert.deepEqual(received, sent)
})
