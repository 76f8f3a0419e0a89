/** File names that once held the event loop for minutes, at each door of a real platform, and after a start. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type JsonInput, SendMessageRequest } from '@a2a-js/sdk'
import { type ServiceError, status as statusCodes } from '@grpc/grpc-js'
import { createGrpcClient } from '../harness/clients/grpc-client.ts'
import { startPlatform } from '../harness/platform.ts'

const DOTS = '.'.repeat(250_000)
const LIMIT = /file name must have at most 1000 characters/
const file = (filename: string) => ({ raw: Buffer.from('content').toString('base64'), filename })
const message = (id: string, part: object) => ({ messageId: id, role: 'ROLE_USER', parts: [part] })

test('RE-13 PL-30 a name of 250,000 dots is refused at each door, and the platform answers, also after kill -9', {
  timeout: 120_000,
}, async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-names-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const first = await startPlatform({ dataDir, args: ['--grpc-port', '0'] })
  t.after(() => first.dispose())
  const id = await first.exec('ls "$MOLECULE_ATTACHMENTS" 2>/dev/null; cat')
  const external = (await first.request('POST', '/workspaces', { name: 'far', runtime: 'external' })).body.id

  const { body: rpc } = await first.rpc(id, 'SendMessage', { message: message('rpc', file(DOTS)) })
  assert.equal(rpc.error?.code, -32602, JSON.stringify(rpc).slice(0, 300))
  assert.match(rpc.error.message, LIMIT)
  const carried = { kind: 'text', text: 'hi', metadata: { molecule_part: { filename: DOTS } } }
  const old = { kind: 'message', messageId: 'old', role: 'user', parts: [carried] }
  const { body: v03 } = await first.rpc(id, 'message/send', { message: old })
  assert.match(v03.error?.message, LIMIT)
  const rest = await first.request('POST', `/workspaces/${id}/a2a/message:send`, {
    message: message('rest', file(DOTS)),
  })
  assert.equal(rest.status, 400)
  assert.match(JSON.stringify(rest.body), LIMIT)

  const client = createGrpcClient(Number(/gRPC +\S+:(\d+)/.exec(first.output())?.[1]), first.token)
  t.after(() => client.close())
  const request = SendMessageRequest.fromJSON({ tenant: id, message: message('grpc', file(DOTS)) } as JsonInput)
  await assert.rejects(client.call('sendMessage', request), (error: ServiceError) => {
    assert.match(error.details, LIMIT)
    return error.code === statusCodes.INVALID_ARGUMENT
  })

  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const settle = { key, host: 'far', outcome: { type: 'done', finality: 'completed', artifacts: [] } }
  const bridged = await first.request('POST', `/workspaces/${external}/inbox/settle`, {
    ...settle,
    outcome: { ...settle.outcome, parts: [file(DOTS)] },
  })
  assert.equal(bridged.status, 400)
  assert.match(JSON.stringify(bridged.body), LIMIT)

  // The longest name that is admitted, of the worst characters, reaches the agent under another name.
  const dots = await first.send(id, 'hello', { parts: [{ text: 'hello' }, file('.'.repeat(1000))] })
  assert.equal(dots.status.state, 'TASK_STATE_COMPLETED')

  process.kill(first.pid, 'SIGKILL')
  await first.exited
  const second = await startPlatform({ dataDir })
  t.after(() => second.dispose())
  const task = await second.send(id, 'are you there?')
  assert.match(JSON.stringify(task.artifacts), /are you there\?/)
})

test('PL-30 a file name is kept without control and direction characters', async (t) => {
  const platform = await startPlatform()
  t.after(() => platform.dispose())
  const id = await platform.exec('cat')
  const task = await platform.send(id, 'hello', { parts: [file('bill\u202egpj\u0007.exe\u0000\u2066')] })
  const { body } = await platform.rpc(id, 'GetTask', { id: task.id, historyLength: 10 })
  const [kept] = body.result.history[0].parts
  assert.equal(kept.filename, 'billgpj.exe')
})
