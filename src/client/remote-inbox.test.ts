import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { systemClock } from '../clock.ts'
import type { Directive } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { writeEnvelope } from '../protocol/envelope.ts'
import { createPlatformConnection } from './platform-connection.ts'
import { createRemoteInbox } from './remote-inbox.ts'

const WORKER = { id: 'worker', workspaces: ['ws_1'] }

interface BridgeBody {
  readonly key: { readonly messageId: string }
  readonly outcome?: object
  readonly leases_max?: number
  readonly holding?: readonly string[]
}

/** A bridge of a platform that answers the first poll with these directives; later polls for work stay open. */
async function openBridge(t: TestContext, handouts: readonly object[]) {
  const calls: { readonly name: string; readonly body: BridgeBody }[] = []
  let polls = 0
  const server = createServer(async (request, response) => {
    const name = request.url?.split('/').at(-1) ?? ''
    const body = (await json(request)) as BridgeBody
    calls.push({ name, body })
    const answers: Record<string, object> = { begin: { standing: 'held' }, settle: { answer: 'settled' } }
    const isFirst = name === 'lease' && polls++ === 0
    if (isFirst || body.leases_max === 0) answers['lease'] = { handouts: isFirst ? handouts : [] }
    const answer = answers[name]
    if (answer !== undefined) response.setHeader('X-Request-Id', 'r').end(JSON.stringify(answer))
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
    connection,
    workspaceId: 'ws_1',
    host: 'here',
    backend: 'mock',
    concurrency: 2,
    startedText: 'started',
    log: silentLog,
  })
  return { inbox, calls }
}

test('CN-6 stop and answer directives of a poll reach the turns of the bridge, in order', async (t) => {
  const key = { workspaceId: 'ws_1', conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const sent = [
    { type: 'answer', key, askId: 'a', parts: [{ text: 'yes' }] },
    { type: 'stop', key },
  ]
  const { inbox } = await openBridge(t, sent)
  const stop = new AbortController()
  const received: Directive[] = []
  const limit = AbortSignal.any([stop.signal, AbortSignal.timeout(10_000)])
  for await (const directive of inbox.leases(WORKER, limit)) {
    received.push(directive)
    if (received.length === sent.length) stop.abort()
  }
  assert.deepEqual(received, sent)
})

test('CN-5 a bridge that stops gives back, uncounted, the lease that it has begun and not taken', async (t) => {
  const envelope = writeEnvelope(letterTo('ws_1').envelope)
  const handout = (messageId: string) => ({
    type: 'lease',
    lease: { workspaceId: 'ws_1', conversationId: 'c', taskId: 't', messageId, epoch: 1, envelope },
    brief: {},
  })
  const { inbox, calls } = await openBridge(t, [handout('first'), handout('second')])
  const named = (name: string) => calls.filter((call) => call.name === name)
  const stop = new AbortController()
  const leases = inbox.leases(WORKER, stop.signal)[Symbol.asyncIterator]()
  const { value: taken } = await leases.next()
  await waitUntil(() => named('begin').length === 2 && named('lease').length === 2, 'both turns have begun')
  stop.abort()
  await leases.return?.()
  assert.equal(taken?.type, 'lease')
  const [given, ...more] = named('settle').map(({ body }) => body)
  assert.deepEqual(more, [])
  assert.notEqual(given?.key.messageId, taken.lease.messageId)
  assert.deepEqual(given?.outcome, { type: 'released', interrupted: false })
  await inbox.leave(WORKER)
  const { leases_max: wanted, holding } = named('lease').at(-1)?.body ?? {}
  assert.deepEqual([wanted, holding], [0, [`${taken.lease.messageId}.1`]], 'it names what it still runs')
})
