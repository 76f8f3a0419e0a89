/**
 * The peer of `bench/a2a.ts`: `@a2a-js/sdk` with express, in memory. Like the mock backend, it publishes a task with a
 * working, an artifact and a completed event. It prints its port when it listens.
 */
import type { AddressInfo } from 'node:net'
import { type Message, Role, TaskState } from '@a2a-js/sdk'
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import express from 'express'

const statusOf = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() })

const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const ids = { taskId, contextId, metadata: undefined }
    const task = { id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined }
    bus.publish(AgentEvent.task({ ...task, status: statusOf(TaskState.TASK_STATE_SUBMITTED) }))
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: statusOf(TaskState.TASK_STATE_WORKING) }))
    const artifact = { artifactId: 'reply', name: '', description: '', metadata: undefined, extensions: [] }
    const parts = [{ content: { $case: 'text' as const, value: `echo: ${textOf(userMessage)}` }, ...NO_FILE }]
    bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact: { ...artifact, parts }, append: false, lastChunk: true }))
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: statusOf(TaskState.TASK_STATE_COMPLETED) }))
    bus.finished()
  },
  cancelTask: async () => undefined,
}

const NO_FILE = { metadata: undefined, filename: '', mediaType: '' }

function textOf({ parts, role }: Message): string {
  const content = role === Role.ROLE_USER ? parts[0]?.content : undefined
  return content?.$case === 'text' ? content.value : ''
}

const card = {
  name: 'peer',
  description: '',
  version: '1',
  supportedInterfaces: [{ url: 'http://localhost/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  provider: undefined,
  capabilities: { streaming: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor)
const app = express()
app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
const server = app.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port}`))
