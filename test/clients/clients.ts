/**
 * The published A2A clients behind one interface: what each can do, called as its documentation says. They build the
 * requests and read the answers, so what works here works for the programs that use them.
 */
import { randomUUID } from 'node:crypto'
import { type Part, SendMessageRequest, TaskPushNotificationConfig, TaskState } from '@a2a-js/sdk'
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js'
import {
  ClientFactory as ClientFactoryV03,
  JsonRpcTransportFactory as JsonRpcTransportFactoryV03,
} from 'a2a-v03/client'
import { CLIENT_VERSIONS, type LoadClient } from './install-clients.ts'

/** Each method gets the A2A URL of a workspace. A method is absent where the client has no such call. */
export interface MatrixClient {
  /** As the table names it. */
  readonly name: string
  /** The text of the reply. */
  send(url: string, text: string): Promise<string>
  /** The texts of the reply, as they arrived. */
  stream(url: string, text: string): Promise<string[]>
  /** The state of the task, in lower case. */
  get?(url: string, taskId: string): Promise<string>
  cancel?(url: string, taskId: string): Promise<string>
  /** Sends under a message id that the caller chooses; the text of the reply. */
  sendAs?(url: string, messageId: string, text: string): Promise<string>
  /** Sets the webhook of a task, and reads it back; its URL. */
  push?(url: string, taskId: string, hook: string): Promise<string>
}

export interface ClientsOptions {
  readonly load: LoadClient
  readonly token: () => string
  readonly fetchWithToken: typeof fetch
  /** Of the two versions of the SDK that are installed with the development packages. */
  readonly sdkVersion: string
  readonly sdkVersionV03: string
}

export function createClients(options: ClientsOptions): MatrixClient[] {
  const { sdkVersion, sdkVersionV03 } = options
  const bindings = [
    ['JSONRPC', 'JSON-RPC'],
    ['HTTP+JSON', 'REST'],
    ['GRPC', 'gRPC'],
  ] as const
  return [
    ...bindings.map(([binding, title]) => sdkClient(binding, `@a2a-js/sdk ${sdkVersion}, ${title}`, options)),
    sdkClientV03(`@a2a-js/sdk ${sdkVersionV03}`, options),
    usingGlobalFetch(aiProviderClient(options), options),
    adkClient(options),
    strandsClient(options),
    usingGlobalFetch(agUiClient(options), options),
  ]
}

/** For a client without a setting for `fetch`: the global one adds the token during each call. */
function usingGlobalFetch(client: MatrixClient, { fetchWithToken }: ClientsOptions): MatrixClient {
  const wrap =
    <T>(method: (url: string, given: string) => Promise<T>) =>
    async (url: string, given: string): Promise<T> => {
      const fetchBefore = globalThis.fetch
      globalThis.fetch = fetchWithToken
      try {
        return await method(url, given)
      } finally {
        globalThis.fetch = fetchBefore
      }
    }
  const { name, send, stream, get, cancel } = client
  const more = { ...(get && { get: wrap(get) }), ...(cancel && { cancel: wrap(cancel) }) }
  return { name, send: wrap(send), stream: wrap(stream), ...more }
}

/** For clients that use the SDK 0.3: a factory of that SDK, as they load it. */
async function clientFactoryOf({ load, fetchWithToken }: ClientsOptions): Promise<unknown> {
  const sdk = await load('@a2a-js/sdk/client')
  return new sdk.ClientFactory({ transports: [new sdk.JsonRpcTransportFactory({ fetchImpl: fetchWithToken })] })
}

const nameOf = (name: keyof typeof CLIENT_VERSIONS): string => `${name} ${CLIENT_VERSIONS[name]}`

const cardUrl = (url: string): string => `${url}/.well-known/agent-card.json`

function sdkClient(binding: string, name: string, { token, fetchWithToken: fetchImpl }: ClientsOptions): MatrixClient {
  const sendToken: Interceptor = (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        metadata.set('authorization', `Bearer ${token()}`)
        next(metadata, listener)
      },
    })
  const clientOf = (url: string) =>
    new ClientFactory({
      transports: [
        new JsonRpcTransportFactory({ fetchImpl }),
        new RestTransportFactory({ fetchImpl }),
        new GrpcTransportFactory({ grpcCallOptions: { interceptors: [sendToken] } }),
      ],
      preferredTransports: [binding],
      cardResolver: new DefaultAgentCardResolver(),
    }).createFromUrl(cardUrl(url), '')
  const message = (text: string, messageId: string = randomUUID()) =>
    SendMessageRequest.fromJSON({ message: { messageId, role: 'ROLE_USER', parts: [{ text }] } })
  const textOf = (parts: readonly Part[] = []) =>
    parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
  const stateOf = (state: TaskState = TaskState.UNRECOGNIZED) =>
    TaskState[state].replace('TASK_STATE_', '').toLowerCase()
  const sendAs = async (url: string, messageId: string | undefined, text: string) => {
    const answer = await (await clientOf(url)).sendMessage(message(text, messageId))
    return 'artifacts' in answer ? textOf(answer.artifacts[0]?.parts) : textOf(answer.parts)
  }
  return {
    name,
    send: (url, text) => sendAs(url, undefined, text),
    sendAs,
    async push(url, taskId, hook) {
      const client = await clientOf(url)
      const config = { taskId, id: 'hook', url: hook }
      await client.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(config))
      return (await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'hook' })).url
    },
    async stream(url, text) {
      const texts: string[] = []
      for await (const { payload } of (await clientOf(url)).sendMessageStream(message(text)))
        if (payload?.$case === 'artifactUpdate') texts.push(textOf(payload.value.artifact?.parts))
      return texts
    },
    async get(url, id) {
      return stateOf((await (await clientOf(url)).getTask({ tenant: '', id })).status?.state)
    },
    async cancel(url, id) {
      return stateOf((await (await clientOf(url)).cancelTask({ tenant: '', id, metadata: undefined })).status?.state)
    },
  }
}

interface PartV03 {
  readonly kind: string
  readonly text?: string
}

const textOfV03 = (parts: readonly object[] = []): string => parts.map((part) => (part as PartV03).text ?? '').join('')

function sdkClientV03(name: string, { fetchWithToken: fetchImpl }: ClientsOptions): MatrixClient {
  const transports = [new JsonRpcTransportFactoryV03({ fetchImpl })]
  const clientOf = (url: string) => new ClientFactoryV03({ transports }).createFromUrl(cardUrl(url), '')
  const message = (text: string, messageId: string = randomUUID()) => ({
    message: {
      kind: 'message' as const,
      messageId,
      role: 'user' as const,
      parts: [{ kind: 'text' as const, text }],
    },
  })
  const sendAs = async (url: string, messageId: string | undefined, text: string) => {
    const answer = await (await clientOf(url)).sendMessage(message(text, messageId))
    return textOfV03(answer.kind === 'task' ? answer.artifacts?.[0]?.parts : answer.parts)
  }
  return {
    name,
    send: (url, text) => sendAs(url, undefined, text),
    sendAs,
    async push(url, taskId, hook) {
      const client = await clientOf(url)
      await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { id: 'hook', url: hook } })
      const named = { id: taskId, pushNotificationConfigId: 'hook' }
      return (await client.getTaskPushNotificationConfig(named)).pushNotificationConfig.url
    },
    async stream(url, text) {
      const texts: string[] = []
      for await (const event of (await clientOf(url)).sendMessageStream(message(text)))
        if (event.kind === 'artifact-update') texts.push(textOfV03(event.artifact.parts))
      return texts
    },
    get: async (url, id) => (await (await clientOf(url)).getTask({ id })).status.state,
    cancel: async (url, id) => (await (await clientOf(url)).cancelTask({ id })).status.state,
  }
}

function aiProviderClient({ load }: ClientsOptions): MatrixClient {
  const modelOf = async (url: string) => (await load('a2a-ai-provider')).a2a(cardUrl(url))
  return {
    name: nameOf('a2a-ai-provider'),
    async send(url, prompt) {
      const { generateText } = await load('ai')
      return (await generateText({ model: await modelOf(url), prompt })).text
    },
    async stream(url, prompt) {
      const { streamText } = await load('ai')
      const texts: string[] = []
      for await (const text of streamText({ model: await modelOf(url), prompt }).textStream) texts.push(text)
      return texts
    },
  }
}

function adkClient(options: ClientsOptions): MatrixClient {
  const { load } = options
  /** The texts of one run: the chunks, which it calls partial, and the whole, which it puts together at the end. */
  const run = async (agentCard: unknown, text: string): Promise<{ chunks: string[]; whole: string }> => {
    const { RemoteA2AAgent } = await load('@google/adk/a2a')
    const { InMemoryRunner } = await load('@google/adk')
    const who = { appName: 'molecule', userId: 'user' }
    const clientFactory = await clientFactoryOf(options)
    const agent = new RemoteA2AAgent({ name: 'remote', agentCard, clientFactory })
    const runner = new InMemoryRunner({ agent, ...who })
    const { id: sessionId } = await runner.sessionService.createSession(who)
    const chunks: string[] = []
    let whole = ''
    const newMessage = { role: 'user', parts: [{ text }] }
    for await (const event of runner.runAsync({ ...who, sessionId, newMessage })) {
      if (event.errorMessage) throw new Error(event.errorMessage)
      if (event.partial) chunks.push(textOfV03(event.content?.parts))
      else whole += textOfV03(event.content?.parts)
    }
    return { chunks, whole }
  }
  return {
    name: nameOf('@google/adk'),
    async send(url, text) {
      // It streams unless the card has no streaming.
      const card = (await (await fetch(cardUrl(url))).json()) as { capabilities: object }
      return (await run({ ...card, capabilities: { ...card.capabilities, streaming: false } }, text)).whole
    },
    async stream(url, text) {
      const { chunks, whole } = await run(`${url}/`, text)
      if (chunks.join('') !== whole) throw new Error(`it put together ${JSON.stringify(whole)}`)
      return chunks
    },
  }
}

function strandsClient(options: ClientsOptions): MatrixClient {
  const agentOf = async (url: string) => {
    const { A2AAgent } = await options.load('@strands-agents/sdk/a2a')
    return new A2AAgent({ url: `${url}/`, clientFactory: await clientFactoryOf(options) })
  }
  return {
    name: nameOf('@strands-agents/sdk'),
    send: async (url, text) => String(await (await agentOf(url)).invoke(text)),
    async stream(url, text) {
      const texts: string[] = []
      for await (const { event } of (await agentOf(url)).stream(text))
        if (event?.kind === 'artifact-update') texts.push(textOfV03(event.artifact.parts))
      return texts
    },
  }
}

/** It wraps the client of the SDK 0.2, which it brings with it; get and cancel are calls of that client. */
function agUiClient({ load }: ClientsOptions): MatrixClient {
  const clientOf = async (url: string) => {
    const { A2AClient } = await load('@a2a-js/sdk/client', '@ag-ui/a2a')
    return new A2AClient(url)
  }
  /** The texts of artifacts, which it gives on as raw events. */
  const run = async (url: string, content: string): Promise<string[]> => {
    const { A2AAgent } = await load('@ag-ui/a2a')
    const initialMessages = [{ id: randomUUID(), role: 'user', content }]
    const agent = new A2AAgent({ a2aClient: await clientOf(url), initialMessages })
    const texts: string[] = []
    const onEvent = ({ event }: { event: { type: string; event?: { artifact?: { parts: object[] } } } }) => {
      if (event.event?.artifact !== undefined) texts.push(textOfV03(event.event.artifact.parts))
    }
    await agent.runAgent({}, { onEvent })
    return texts
  }
  return {
    name: nameOf('@ag-ui/a2a'),
    send: async (url, text) => (await run(url, text)).join(''),
    stream: run,
    get: async (url, id) => (await (await clientOf(url)).getTask({ id })).result?.status.state,
    cancel: async (url, id) => (await (await clientOf(url)).cancelTask({ id })).result?.status.state,
  }
}
