import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { errorOf, listEvents, makeTurn, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { serve } from '../../../test/harness/loopback-server.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Message, Part, StreamResponse, TaskState } from '../../protocol/a2a.ts'
import type { BackendEvent } from '../backend.ts'
import { createOptions } from '../options.ts'
import { a2a, sendSignal } from './a2a.ts'
import { outgoingMessage } from './session.ts'

interface Rpc {
  readonly method: string
  readonly params: { readonly id?: string; readonly message?: Message }
}

/** How the remote agent answers a call, in A2A 1.0. */
interface Answerer {
  stream(...events: StreamResponse[]): void
  answer(result: object): void
  refuse(code: number, message: string): void
  readonly response: ServerResponse
}

/** A scripted A2A 1.0 agent, and the backend that relays to it. */
async function remote(t: TestContext, script: (rpc: Rpc, answerer: Answerer) => void, streaming = true) {
  const calls: Rpc[] = []
  const { url } = await serve(t, (request, response) => {
    if (request.method === 'GET') {
      const supportedInterfaces = [{ url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
      return void response.end(JSON.stringify({ capabilities: { streaming }, supportedInterfaces }))
    }
    const write = (more: object) => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...more }))
    const answerer: Answerer = {
      response,
      answer: (result) => void write({ result }),
      refuse: (code, message) => void write({ error: { code, message } }),
      stream(...events) {
        if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        for (const result of events) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
      },
    }
    json(request).then((rpc) => {
      calls.push(rpc as Rpc)
      script(rpc as Rpc, answerer)
    }, assert.fail)
  })
  const context = {
    processes: createProcessHarness(t).processes,
    environment: PLAIN_ENVIRONMENT,
    clock: systemClock,
    log: silentLog,
  }
  // The timers of the clock do not keep the process alive, and between two polls there is nothing else.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const backend = a2a.create(createOptions({ url }), context)
  t.after(() => backend.close())
  const run = (given: TurnOverrides, signal = new AbortController().signal) =>
    listEvents(backend.run(makeTurn(given), signal))
  return { calls, run, backend, methods: () => calls.map(({ method }) => method) }
}

const task = (state: TaskState, more: object = {}): StreamResponse => ({
  task: { id: 'up-1', contextId: 'ctx-1', status: { state }, ...more },
})
const status = (state: TaskState): StreamResponse => ({
  statusUpdate: { taskId: 'up-1', contextId: 'ctx-1', status: { state } },
})
const artifact = (text: string, append = false): StreamResponse => ({
  artifactUpdate: { taskId: 'up-1', contextId: 'ctx-1', artifact: { artifactId: 'a', parts: [{ text }] }, append },
})
const whole = (...parts: Part[]) => ({ artifacts: [{ artifactId: 'a', parts }] })
const notesIn = (events: readonly BackendEvent[]) =>
  Object.fromEntries(events.flatMap((event) => (event.type === 'note' ? [[event.key, event.value]] : [])))
test('AG-11 the sending is noted before the send, and the remote task with its first event', async (t) => {
  const { calls, run } = await remote(t, (_rpc, { stream, response }) => {
    stream(task('TASK_STATE_SUBMITTED'), status('TASK_STATE_COMPLETED'))
    response.end()
  })
  const events = await run({ messageId: 'msg_7', text: 'hi' })
  assert.deepEqual(
    events.map((event) => event.type),
    ['note', 'note', 'session', 'activity', 'activity', 'session', 'done'],
  )
  assert.deepEqual(notesIn(events), { sending: 'mol-msg_7', upstream: '{"taskId":"up-1","contextId":"ctx-1"}' })
  assert.equal(calls[0]?.params.message?.messageId, 'mol-msg_7')
})

test('AG-11 the trace of a message is passed to the remote agent', async (t) => {
  const traces: unknown[] = []
  const { run } = await remote(t, (_rpc, { stream, response }) => {
    traces.push(response.req.headers['traceparent'])
    stream(task('TASK_STATE_COMPLETED'))
    response.end()
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await run({ text: 'hi', env: { TRACEPARENT: traceparent } })
  await run({ text: 'hi' })
  assert.deepEqual(traces, [traceparent, undefined])
})

test('AG-11 an attempt after a send without an answer sends the same id again', async (t) => {
  const { calls, run } = await remote(t, (_rpc, { stream, response }) => {
    stream(task('TASK_STATE_COMPLETED'))
    response.end()
  })
  await run({ messageId: 'msg_7', text: 'hi', notes: { sending: 'mol-msg_7' } })
  assert.deepEqual(
    calls.map(({ params }) => params.message?.messageId),
    ['mol-msg_7'],
  )
})

test('AG-11 an attempt that knows the remote task gets it, follows its stream, and reports nothing twice', async (t) => {
  const { run, methods } = await remote(t, ({ method }, { answer, stream, response }) => {
    const soFar = task('TASK_STATE_WORKING', whole({ text: 'one ' }))
    if (method === 'GetTask') return answer(soFar.task as object)
    stream(soFar, artifact('two', true), status('TASK_STATE_COMPLETED'))
    response.end()
  })
  const events = await run({ notes: { sending: 'x', upstream: '{"taskId":"up-1"}' } })
  assert.deepEqual(methods(), ['GetTask', 'SubscribeToTask'])
  const chunks = events.flatMap((event) => (event.type === 'artifact' ? event.artifact.parts[0]?.text : []))
  assert.deepEqual(chunks, ['one ', 'two'])
  assert.equal(events.at(-1)?.type, 'done')
})

test('AG-11 a stream that breaks is resumed without a second send', async (t) => {
  const { run, methods } = await remote(t, ({ method }, { answer, stream, response }) => {
    if (method === 'SendStreamingMessage') {
      stream(task('TASK_STATE_WORKING'), artifact('one '))
      return void setTimeout(() => response.destroy(), 20)
    }
    if (method === 'GetTask') return answer(task('TASK_STATE_WORKING', whole({ text: 'one ' })).task as object)
    stream(task('TASK_STATE_COMPLETED', whole({ text: 'one ' }, { text: 'two' })))
    response.end()
  })
  const events = await run({ text: 'hi' })
  assert.deepEqual(methods(), ['SendStreamingMessage', 'GetTask', 'SubscribeToTask'])
  const last = events.findLast((event) => event.type === 'artifact')
  assert.deepEqual([last?.append, last?.artifact.parts], [false, [{ text: 'one ' }, { text: 'two' }]])
  assert.equal(events.at(-1)?.type, 'done')
})

test('AG-11 an agent without streams gets one send and is polled until its task ends', async (t) => {
  let asked = 0
  const script = ({ method }: Rpc, { answer }: Answerer) => {
    if (method === 'SendMessage') return answer(task('TASK_STATE_SUBMITTED'))
    asked += 1
    answer(task(asked < 2 ? 'TASK_STATE_WORKING' : 'TASK_STATE_COMPLETED', whole({ text: 'x' })).task as object)
  }
  const { run, methods } = await remote(t, script, false)
  const events = await run({ text: 'hi' })
  assert.deepEqual(methods(), ['SendMessage', 'GetTask', 'GetTask'])
  assert.equal(events.at(-1)?.type, 'done')
})

test('AG-11 an old question in the first snapshot does not end the turn', async (t) => {
  const { run } = await remote(t, (_rpc, { stream, response }) => {
    stream(task('TASK_STATE_INPUT_REQUIRED'), status('TASK_STATE_WORKING'), artifact('blue it is'))
    stream(status('TASK_STATE_COMPLETED'))
    response.end()
  })
  const sessionToken = JSON.stringify({ contextId: 'ctx-1', taskId: 'up-1', ourTaskId: 'task_x' })
  const events = await run({ text: 'blue', sessionToken, request: { task_id: 'task_x' } })
  const end = events.at(-1)
  assert.deepEqual(end?.type === 'done' && end.finality, 'completed')
})

test('AG-11 an answer to a remote task that is gone is a lost session', async (t) => {
  const { run } = await remote(t, (_rpc, { refuse }) => refuse(-32001, 'no such task'))
  const sessionToken = JSON.stringify({ contextId: 'ctx-1', taskId: 'up-1', ourTaskId: 'task_x' })
  const lost = errorOf(await run({ text: 'blue', sessionToken, request: { task_id: 'task_x' } }))
  assert.equal(lost.code, 'session_lost')
  const other = errorOf(await run({ text: 'blue', sessionToken, request: { task_id: 'task_y' } }))
  assert.equal(other.code, 'not_found')
})

test('AG-11 a message that would go in a circle is refused before it is sent', async (t) => {
  const { run, calls } = await remote(t, () => undefined)
  const raw = { params: { message: { metadata: { molecule_path: ['ws_0', 'ws_1'] } } } }
  const error = errorOf(await run({ text: 'hi', request: { workspace_id: 'ws_1', raw } }))
  assert.deepEqual([error.code, error.retryable], ['forbidden', false])
  assert.match(error.message, /circle: ws_0 -> ws_1 -> ws_1/)
  assert.equal(calls.length, 0)
})

test('AG-11 TW-9 a remote agent gets the limits of a delegation, and not who began it', () => {
  const limits = { depth_left: 2, turns_left: 7, deadline: '2030-01-01T00:00:00.000Z' }
  const delegation = { ...limits, root_task: 't', root_caller: 'discord:42', turns_max: 50 }
  const raw = { params: { message: { metadata: { molecule_delegation: delegation } } } }
  const { metadata } = outgoingMessage(makeTurn({ text: 'hi', request: { workspace_id: 'ws_1', raw } }))
  assert.deepEqual(metadata, { molecule_delegation: limits, molecule_path: ['ws_1'] })
})

test('AG-11 only a cancel cancels the remote task; a drain leaves it to the next attempt', async (t) => {
  for (const [reason, expected] of [
    ['canceled', ['SendStreamingMessage', 'CancelTask']],
    ['drain', ['SendStreamingMessage']],
  ] as const) {
    const stop = new AbortController()
    const { backend, methods } = await remote(t, ({ method }, { answer, stream }) => {
      if (method === 'CancelTask') return answer(task('TASK_STATE_CANCELED').task as object)
      stream(task('TASK_STATE_WORKING'))
    })
    const events: BackendEvent[] = []
    for await (const event of backend.run(makeTurn({ text: 'hi' }), stop.signal)) {
      events.push(event)
      if (event.type === 'session') stop.abort(reason)
    }
    assert.equal(errorOf(events).code, 'canceled')
    assert.deepEqual(methods(), expected)
  }
})

test('AG-11 a cancel before the remote task has a name cancels it as soon as it has one', async (t) => {
  const stop = new AbortController()
  const { run, methods } = await remote(t, ({ method }, { answer, stream }) => {
    if (method === 'CancelTask') return answer(task('TASK_STATE_CANCELED').task as object)
    stop.abort('canceled')
    setTimeout(stream, 20, task('TASK_STATE_WORKING'))
  })
  assert.equal(errorOf(await run({ text: 'hi' }, stop.signal)).code, 'canceled')
  assert.deepEqual(methods(), ['SendStreamingMessage', 'CancelTask'])
})

test('AG-11 a send whose signal has aborted before it began ends at once, or after the wait for the task name', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const isAborted = (reason: string, isNamed: boolean) => {
    const { signal, release } = sendSignal(AbortSignal.abort(reason), () => isNamed)
    t.after(release)
    return signal.aborted
  }
  assert.deepEqual([isAborted('drain', false), isAborted('canceled', true)], [true, true])
  const unnamed = sendSignal(AbortSignal.abort('canceled'), () => false)
  assert.equal(unnamed.signal.aborted, false)
  t.mock.timers.tick(5000)
  assert.equal(unnamed.signal.aborted, true)
})

test('AG-11 an unreachable remote agent is retried; a refusal is not', async (t) => {
  const { run } = await remote(t, (_rpc, { response }) => void response.destroy())
  const broken = errorOf(await run({ text: 'hi' }))
  assert.deepEqual([broken.code, broken.retryable], ['provider_unreachable', true])
  const refusing = await remote(t, (_rpc, { refuse }) => refuse(-32602, 'parts are missing'))
  const refused = errorOf(await refusing.run({ text: 'hi' }))
  assert.deepEqual([refused.code, refused.retryable], ['agent_failed', false])
  assert.match(refused.message, /parts are missing/)
})
