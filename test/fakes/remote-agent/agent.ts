/**
 * A fake remote agent in its own process, built with the published SDK: `node agent.ts 1.0|0.3|rest`; `rest` is 1.0
 * without JSON-RPC. It prints its base URL. `GET /seen` returns what it received (sends, cancels, Authorization headers),
 * `POST /release` ends its slow tasks.
 */
import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { AgentCard, StreamResponse as Event10, Message } from '@a2a-js/sdk'
import { AgentEvent, type AgentExecutionEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import * as v03 from 'a2a-v03/server'
import * as express03 from 'a2a-v03/server/express'
import express from 'express'
import type { Message as OurMessage, StreamResponse } from '../../../src/protocol/a2a.ts'
import { eventToV03, messageFromV03 } from '../../../src/protocol/v03/v03.ts'
import type { V03Message } from '../../../src/protocol/v03/v03-types.ts'
import { type ReleaseControl, type RemoteTurn, runBehaviour } from './behaviour.ts'

const seen = { sends: [] as unknown[], cancels: [] as string[], authorization: [] as unknown[], gets: 0 }
const releases = new EventEmitter()
const control: ReleaseControl = {
  release: () => void releases.emit('release'),
  released: async () => void (await once(releases, 'release')),
}
const canceled = new Set<string>()
const REST = process.argv[2] === 'rest'

interface Bus {
  publish(event: StreamResponse): void
  finished(): void
}

async function execute(message: OurMessage, turn: RemoteTurn, bus: Bus): Promise<void> {
  seen.sends.push(message)
  for await (const event of runBehaviour(message, turn, control)) {
    if (canceled.has(turn.taskId)) return
    bus.publish(event)
  }
  bus.finished()
}

function cancel(taskId: string, bus: Bus): Promise<void> {
  seen.cancels.push(taskId)
  canceled.add(taskId)
  const status = { state: 'TASK_STATE_CANCELED', timestamp: new Date().toISOString() } as const
  bus.publish({ statusUpdate: { taskId, contextId: '', status } })
  bus.finished()
  return Promise.resolve()
}

function toEvent10(event: StreamResponse): AgentExecutionEvent {
  const payload = Event10.fromJSON(event).payload
  switch (payload?.$case) {
    case 'task':
      return AgentEvent.task(payload.value)
    case 'message':
      return AgentEvent.message(payload.value)
    case 'statusUpdate':
      return AgentEvent.statusUpdate(payload.value)
    case 'artifactUpdate':
      return AgentEvent.artifactUpdate(payload.value)
    default:
      throw new Error('no such event')
  }
}

function serve10(router: express.Router, base: string, behaviour?: string): void {
  const card = AgentCard.fromJSON({
    name: 'remote',
    description: 'a fake for tests',
    version: '1',
    capabilities: { streaming: true },
    supportedInterfaces: [
      { url: `${base}/grpc`, protocolBinding: 'GRPC', protocolVersion: '1.0' },
      { url: `${base}/rpc`, protocolBinding: REST ? 'HTTP+JSON' : 'JSONRPC', protocolVersion: '1.0' },
    ],
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    skills: [],
  })
  const bus = (target: { publish(event: AgentExecutionEvent): void; finished(): void }): Bus => ({
    publish: (event) => target.publish(toEvent10(event)),
    finished: () => target.finished(),
  })
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
    execute: ({ userMessage, taskId, contextId, task }, target) =>
      execute(
        Message.toJSON(userMessage) as OurMessage,
        { taskId, contextId, known: task !== undefined, behaviour },
        bus(target),
      ),
    cancelTask: (taskId, target) => cancel(taskId, bus(target)),
  })
  router.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }))
  const options = { requestHandler: handler, userBuilder: UserBuilder.noAuthentication }
  router.use('/rpc', REST ? restHandler(options) : jsonRpcHandler(options))
}

function serve03(router: express.Router, base: string, behaviour?: string): void {
  const card = {
    name: 'remote',
    description: 'a fake for tests',
    version: '1',
    protocolVersion: '0.3.0',
    url: `${base}/rpc`,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true },
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    skills: [],
  }
  const bus = (target: v03.ExecutionEventBus): Bus => ({
    publish: (event) => target.publish(eventToV03(event) as Parameters<typeof target.publish>[0]),
    finished: () => target.finished(),
  })
  const handler = new v03.DefaultRequestHandler(card, new v03.InMemoryTaskStore(), {
    execute: ({ userMessage, taskId, contextId, task }, target) => {
      const message = messageFromV03(userMessage as V03Message)
      return execute(message, { taskId, contextId, known: task !== undefined, behaviour }, bus(target))
    },
    cancelTask: (taskId, target) => cancel(taskId, bus(target)),
  })
  router.use('/.well-known/agent-card.json', express03.agentCardHandler({ agentCardProvider: handler }))
  const userBuilder = express03.UserBuilder.noAuthentication
  router.use('/rpc', express03.jsonRpcHandler({ requestHandler: handler, userBuilder }))
}

const app = express()
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
app.get('/seen', (_request, response) => void response.json(seen))
app.post('/release', (_request, response) => {
  control.release()
  response.json({})
})
app.use(express.json({ limit: '20mb', type: () => true }))
app.use('/rpc', (request, _response, next) => {
  seen.authorization.push(request.headers.authorization ?? null)
  next()
})
const serve = process.argv[2] === '0.3' ? serve03 : serve10
serve(app, url)
// For tests that cannot choose the behaviour by their message: the same agent at a URL for each behaviour.
for (const behaviour of ['endless', 'fail', 'flood']) {
  const router = express.Router()
  serve(router, `${url}/as/${behaviour}`, behaviour)
  app.use(`/as/${behaviour}`, router)
}
process.stdout.write(`${url}\n`)
