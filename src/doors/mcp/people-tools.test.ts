import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { peopleTools } from './people-tools.ts'
import type { ToolCall } from './tool.ts'

interface Scene {
  /** Where `send` says that it went. */
  readonly sent?: readonly string[]
  readonly refusal?: MoleculeError
  readonly runtime?: string
  readonly conversationId?: string | undefined
  readonly bytes?: number
}

async function use(name: string, input: object, scene: Scene = {}) {
  const { sent = [], refusal, runtime = 'codex', bytes = 3 } = scene
  const done: unknown[] = []
  const call = {
    workspaceId: 'ws_1',
    identity: { name: 'ada', conversationId: 'conversationId' in scene ? scene.conversationId : 'c' },
    workspaces: { get: async () => ({ runtime, workingDir: '/work' }) },
    activity: { addNote: async (...note: unknown[]) => done.push(['note', ...note]) },
    outreach: {
      async send(source: unknown, parts: readonly Part[]) {
        done.push(['send', source, parts.length])
        if (refusal !== undefined) throw refusal
        return sent
      },
    },
    workingFiles: {
      read: async (path: string) => ({ filename: path, raw: Buffer.alloc(bytes).toString('base64') }),
      attach: async (file: Part, turn: unknown) => void done.push(['attach', file.filename, turn]),
    },
  } as unknown as ToolCall
  const tool = peopleTools.find((each) => each.name === name)
  assert.ok(tool)
  const result = await tool.run(input as never, call).catch((error: unknown) => error as MoleculeError)
  return { result, done }
}

const SOURCE = { workspaceId: 'ws_1', conversationId: 'c' }

test('GW-17 a message is shown in the activity, and the agent hears where it went, or that the limit is reached', async () => {
  const say = (scene: Scene) => use('send_message_to_user', { message: 'done' }, scene)
  const { result, done } = await say({ sent: ["Ada's home chat", "Eve's home chat"] })
  assert.deepEqual(result, {
    text: "It is shown in the activity, and sent to Ada's home chat and to Eve's home chat.",
  })
  const note = { type: 'message_to_user', text: 'done', by: 'ada' }
  assert.deepEqual(done, [
    ['note', 'ws_1', note],
    ['send', SOURCE, 1],
  ])
  const nowhere = 'It is shown in the activity. It went to no chat: no person has a home chat for this workspace.'
  assert.deepEqual((await say({})).result, { text: nowhere })
  const refused = await say({ refusal: new MoleculeError('too_many_requests', '30 an hour') })
  const text = 'It is shown in the activity, but not sent to a chat (too_many_requests): 30 an hour.'
  assert.deepEqual(refused.result, { text, isError: true })
  assert.equal(
    (await say({ refusal: new MoleculeError('store_unavailable', 'x') })).result instanceof MoleculeError,
    true,
  )
})

test('GW-17 a file goes to the chat, else to the answer; only a turn on this machine sends one, of 16 MiB at most', async () => {
  const send = (scene: Scene, caption?: string) =>
    use('send_file', { path: 'a.txt', ...(caption && { caption }) }, scene)
  const sent = await send({ sent: ['the chat of this conversation'] }, 'look')
  assert.deepEqual(sent.result, { text: 'a.txt is read, and sent to the chat of this conversation.' })
  assert.deepEqual(sent.done, [['send', SOURCE, 2]])
  const attached = await send({})
  assert.match((attached.result as { text: string }).text, /^a\.txt comes with your answer/)
  assert.deepEqual(attached.done, [
    ['send', SOURCE, 1],
    ['attach', 'a.txt', { workingDir: '/work', conversationId: 'c' }],
  ])
  const refusals: [Scene, string][] = [
    [{ conversationId: undefined }, 'forbidden'],
    [{ runtime: 'external' }, 'unsupported_operation'],
    [{ bytes: 16 * 1024 * 1024 + 1 }, 'too_large'],
  ]
  for (const [scene, code] of refusals) {
    const { result, done } = await send(scene)
    assert.equal((result as MoleculeError).code, code)
    assert.deepEqual(done, [])
  }
})
