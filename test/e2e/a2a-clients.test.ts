/**
 * The published A2A clients against the real platform. The clients build the requests and parse the responses, so what
 * passes here works for every program that uses them.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { type Message, type Part, Role, type Task, TaskState } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js'
import {
  ClientFactory as ClientFactoryV03,
  type Client as ClientV03,
  JsonRpcTransportFactory as JsonRpcTransportFactoryV03,
} from 'a2a-v03/client'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

let platform: PlatformUnderTest
/** A workspace that answers at once. */
let quick: string
/** A workspace that takes a second and streams lines meanwhile. */
let slow: string

before(async () => {
  platform = await startPlatform({ args: ['--grpc-port', '0'] })
  const mock = { name: 'quick', runtime: 'mock', runtime_config: { stream: true } }
  quick = (await platform.request('POST', '/workspaces', mock)).body.id
  const lines = 'for n in 1 2 3 4 5 6; do echo line $n; sleep 0.15; done'
  slow = await platform.exec(lines, { max_concurrent_tasks: 8 })
})
after(() => platform.dispose())

const fetchWithToken: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('Authorization', `Bearer ${platform.token}`)
  return fetch(input, { ...init, headers })
}

const sendToken: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      metadata.set('authorization', `Bearer ${platform.token}`)
      next(metadata, listener)
    },
  })

const cardUrl = (workspaceId: string) => `${platform.url}/workspaces/${workspaceId}/a2a/.well-known/agent-card.json`

type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC'

async function clientOf(binding: Binding, workspaceId: string): Promise<Client> {
  const options = { fetchImpl: fetchWithToken }
  const factory = new ClientFactory({
    transports: [
      new JsonRpcTransportFactory(options),
      new RestTransportFactory(options),
      new GrpcTransportFactory({ grpcCallOptions: { interceptors: [sendToken] } }),
    ],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver(),
  })
  const client = await factory.createFromUrl(cardUrl(workspaceId), '')
  assert.equal(client.transport.protocolName, binding)
  return client
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

const userMessage = (text: string): Message => ({
  messageId: randomUUID(),
  contextId: '',
  taskId: '',
  role: Role.ROLE_USER,
  parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

const sendParams = (text: string, returnImmediately = false) => ({
  tenant: '',
  message: userMessage(text),
  configuration: { acceptedOutputModes: [], returnImmediately, taskPushNotificationConfig: undefined },
  metadata: undefined,
})

const textOf = (parts: readonly Part[] = []) =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')

const isTask = (result: object): result is Task => 'status' in result

for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const) {
  suite(`the 1.x client over ${binding}`, () => {
    const sendNow = async (client: Client): Promise<Task> => {
      const task = await client.sendMessage(sendParams('go', true))
      assert.ok(isTask(task))
      return task
    }

    test(`PL-5 sends a message and gets its task (${binding})`, async () => {
      const client = await clientOf(binding, quick)
      const task = await client.sendMessage(sendParams('hello'))
      assert.ok(isTask(task))
      assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
      assert.equal(textOf(task.artifacts[0]?.parts), 'echo: hello')
      const got = await client.getTask({ tenant: '', id: task.id, historyLength: 1 })
      assert.deepEqual([got.id, got.contextId, got.history.length], [task.id, task.contextId, 1])
      assert.equal(textOf(got.history[0]?.parts), 'hello')
    })

    test(`PL-5 streams a task from its first event to its end (${binding})`, async () => {
      const client = await clientOf(binding, slow)
      const events = await all(client.sendMessageStream(sendParams('go')))
      const [first, last] = [events[0]?.payload, events.at(-1)?.payload]
      assert.equal(first?.$case, 'task')
      assert.ok(last?.$case === 'statusUpdate')
      assert.equal(last.value.status?.state, TaskState.TASK_STATE_COMPLETED)
      const chunks = events.flatMap(({ payload }) => (payload?.$case === 'artifactUpdate' ? [payload.value] : []))
      assert.ok(chunks.length > 3, `${chunks.length} chunks`)
      const lines = [1, 2, 3, 4, 5, 6].map((n) => `line ${n}\n`).join('')
      // The first chunk begins the artifact, the others append, and the last one closes it: nothing comes twice.
      assert.equal(chunks.map(({ artifact }) => textOf(artifact?.parts)).join(''), lines)
      assert.deepEqual(
        chunks.map(({ append, lastChunk }) => [append, lastChunk]),
        chunks.map((_, index) => [index > 0, index === chunks.length - 1]),
      )
    })

    test(`PL-5 subscribes to a running task, and not to an ended one (${binding})`, async () => {
      const client = await clientOf(binding, slow)
      const { id } = await sendNow(client)
      const subscribe = () => all(client.resubscribeTask({ tenant: '', id }))
      const [one, other] = await Promise.all([subscribe(), subscribe()])
      assert.equal(one[0]?.payload?.$case, 'task')
      assert.deepEqual(one.slice(-2), other.slice(-2))
      const last = one.at(-1)?.payload
      assert.ok(last?.$case === 'statusUpdate' && last.value.status?.state === TaskState.TASK_STATE_COMPLETED)
      await assert.rejects(subscribe, (error: Error) => /UnsupportedOperationError/.test(`${error} ${error.cause}`))
    })

    test(`PL-5 lists tasks page by page, with artifacts only on request (${binding})`, async () => {
      const client = await clientOf(binding, quick)
      const message = { ...userMessage('one of three'), contextId: randomUUID() }
      for (const text of ['one', 'two', 'three']) {
        await client.sendMessage({
          ...sendParams(text),
          message: { ...userMessage(text), contextId: message.contextId },
        })
      }
      const query = {
        tenant: '',
        contextId: message.contextId,
        status: TaskState.TASK_STATE_COMPLETED,
        pageToken: '',
        statusTimestampAfter: new Date(Date.now() - 60_000).toISOString(),
      }
      const first = await client.listTasks({ ...query, pageSize: 2, includeArtifacts: true })
      assert.deepEqual([first.tasks.length, first.totalSize, first.pageSize], [2, 3, 2])
      assert.equal(textOf(first.tasks[0]?.artifacts[0]?.parts), 'echo: three')
      const second = await client.listTasks({ ...query, pageSize: 2, pageToken: first.nextPageToken })
      assert.deepEqual([second.tasks.length, second.nextPageToken], [1, ''])
      assert.deepEqual(second.tasks[0]?.artifacts, [])
    })

    test(`PL-5 cancels a task, twice with the same result, but not an ended task (${binding})`, async () => {
      const client = await clientOf(binding, slow)
      const { id } = await sendNow(client)
      const cancel = { tenant: '', id, metadata: undefined }
      for (const task of [await client.cancelTask(cancel), await client.cancelTask(cancel)]) {
        assert.equal(task.status?.state, TaskState.TASK_STATE_CANCELED)
      }
      const done = await (await clientOf(binding, quick)).sendMessage(sendParams('hello'))
      assert.ok(isTask(done))
      const other = await clientOf(binding, quick)
      await assert.rejects(other.cancelTask({ ...cancel, id: done.id }), { name: /TaskNotCancelableError/ })
      await assert.rejects(other.getTask({ tenant: '', id: 'nobody' }), { name: /TaskNotFoundError/ })
    })

    test(`PL-5 gets the extended card (${binding})`, async () => {
      const client = await clientOf(binding, quick)
      const card = await client.getAgentCard()
      assert.equal(card.name, 'quick')
      assert.equal(card.capabilities?.extensions[0]?.params?.['status'], 'online')
    })
  })
}

suite('the 0.3 client', () => {
  const clientV03 = async (workspaceId: string): Promise<ClientV03> => {
    const transports = [new JsonRpcTransportFactoryV03({ fetchImpl: fetchWithToken })]
    return new ClientFactoryV03({ transports }).createFromUrl(cardUrl(workspaceId), '')
  }
  const sendParamsV03 = (text: string) => ({
    message: {
      kind: 'message' as const,
      messageId: randomUUID(),
      role: 'user' as const,
      parts: [{ kind: 'text' as const, text }],
    },
  })

  test('PL-5 sends a message, gets and cancels its task (0.3)', async () => {
    const client = await clientV03(quick)
    const task = await client.sendMessage(sendParamsV03('hello'))
    assert.ok(task.kind === 'task')
    assert.equal(task.status.state, 'completed')
    assert.deepEqual(task.artifacts?.[0]?.parts, [{ kind: 'text', text: 'echo: hello' }])
    assert.equal((await client.getTask({ id: task.id })).status.state, 'completed')
    await assert.rejects(client.cancelTask({ id: task.id }), /TaskNotCancelableError/)
    const running = await (await clientV03(slow)).sendMessage({
      ...sendParamsV03('go'),
      configuration: { blocking: false },
    })
    assert.ok(running.kind === 'task')
    assert.equal((await (await clientV03(slow)).cancelTask({ id: running.id })).status.state, 'canceled')
  })

  test('PL-5 streams and resubscribes (0.3)', async () => {
    const client = await clientV03(slow)
    const kinds: string[] = []
    let resubscribed: Promise<unknown[]> | undefined
    for await (const event of client.sendMessageStream(sendParamsV03('go'))) {
      kinds.push(event.kind)
      if (event.kind === 'task') resubscribed = all(client.resubscribeTask({ id: event.id }))
      if (event.kind === 'status-update') assert.equal(event.final, event.status.state === 'completed')
    }
    assert.equal(kinds[0], 'task')
    assert.ok(kinds.filter((kind) => kind === 'artifact-update').length > 3, kinds.join())
    assert.equal(kinds.at(-1), 'status-update')
    const events = (await resubscribed) as { kind: string; final?: boolean }[]
    assert.equal(events[0]?.kind, 'task')
    assert.equal(events.at(-1)?.final, true)
  })

  test('PL-5 reads why a stream was refused (0.3)', async () => {
    const client = await clientV03(quick)
    const task = await client.sendMessage(sendParamsV03('hello'))
    assert.ok(task.kind === 'task')
    await assert.rejects(all(client.resubscribeTask({ id: task.id })), /has ended.*-32004/)
  })
})
