/** What a chat shows of the log of a message: its tools, and the reply so far of a running turn. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import type { TurnEvent } from '../inbox.ts'
import { createConversations } from './conversations.ts'
import type { LogItem } from './event-log.ts'

const MIB = 1024 * 1024

async function openChat(t: TestContext, states: readonly string[]) {
  const { add, sql, store } = await openStoredRows(t)
  const ids = states.map((_, index) => `m${index + 1}`)
  await add({
    workspace_load: [{ workspace_id: 'ws_1' }, { workspace_id: 'ws_2' }],
    conversations: [{ id: 'c1' }],
    tasks: ids.map((id) => ({ id, state: 'TASK_STATE_WORKING' })),
    messages: ids.map((id, index) => ({
      id,
      n: index + 1,
      state: states[index] ?? '',
      settled_at: states[index] === 'leased' ? null : NOON_MS,
      reply: states[index] === 'leased' ? null : replyOf('done'),
    })),
  })
  const read = async () => {
    const query = { workspaceId: 'ws_1', conversation: 'c1', limit: 20, detail: false }
    return (await createConversations(store).read(query)).messages
  }
  let seq = 0
  /** Stores one row of the log for each list of items. */
  const log = (messageId: string, rows: readonly (readonly LogItem[])[], more: object = {}) =>
    add({
      events: rows.map((items) => ({
        seq: ++seq,
        at_ms: NOON_MS + seq,
        task_id: messageId,
        message_id: messageId,
        items: JSON.stringify(items),
        ...more,
      })),
    })
  const tools = async (id: string) => {
    const found = (await read()).find((message) => message.id === id)
    return { tools: found?.tools, hasMoreTools: found?.hasMoreTools }
  }
  const reply = async () => (await read())[0]?.reply
  return { add, sql, log, tools, reply }
}

const turn = (event: TurnEvent): LogItem => ({ t: 'turn', event })
const tool = (name: string, state: 'started' | 'finished' | 'failed', subject?: string): LogItem[] => [
  turn({ type: 'tool', name, state, ...(subject !== undefined && { subject }) }),
]
const text = (delta: string): LogItem[] => [turn({ type: 'text', delta })]
/** A row of exactly so many bytes. */
const large = (bytes: number, make: (filler: string) => LogItem[]): LogItem[] =>
  make('x'.repeat(bytes - JSON.stringify(make('')).length))

const status = (state: 'TASK_STATE_AUTH_REQUIRED' | 'TASK_STATE_WORKING'): LogItem[] => [{ t: 'status', state }]

test('CV-2 the time of a tool is without the time that a person took to answer', async (t) => {
  const { log, tools } = await openChat(t, ['leased'])
  await log('m1', [tool('Bash', 'started', 'make'), status('TASK_STATE_AUTH_REQUIRED')])
  await log('m1', [status('TASK_STATE_WORKING')], { at_ms: NOON_MS + 60_002 })
  assert.equal((await tools('m1')).tools?.[0]?.waitedMs, 60_000)
  await log('m1', [tool('Bash', 'finished', 'make')], { at_ms: NOON_MS + 60_005 })
  await log('m1', [tool('Read', 'started', 'a')], { at_ms: NOON_MS + 60_006 })
  await log('m1', [tool('Read', 'finished', 'a')], { at_ms: NOON_MS + 60_008 })
  const shown = (await tools('m1')).tools?.map(({ name, durationMs, waitedMs }) => [name, durationMs, waitedMs])
  assert.deepEqual(shown, [
    ['Bash', 4, undefined],
    ['Read', 2, undefined],
  ])
})

test('CV-2 a tool has the end with its name and subject, and the time that it took', async (t) => {
  const { log, tools } = await openChat(t, ['leased'])
  await log('m1', [
    tool('Bash', 'started', 'a'),
    tool('Bash', 'started', 'b'),
    tool('Read', 'started', 'a'),
    tool('Bash', 'finished', 'a'),
    tool('Bash', 'failed'),
    tool('Bash', 'finished', 'a'),
    tool('Read', 'finished', 'b'),
    tool('Edit', 'started'),
    tool('Edit', 'finished', 'c'),
  ])
  const atMs = (seq: number) => NOON_MS + seq
  assert.deepEqual(await tools('m1'), {
    hasMoreTools: undefined,
    tools: [
      { name: 'Bash', subject: 'a', state: 'finished', atMs: atMs(1), durationMs: 3 },
      { name: 'Bash', subject: 'b', state: 'failed', atMs: atMs(2), durationMs: 3 },
      { name: 'Read', subject: 'a', state: 'started', atMs: atMs(3) },
      { name: 'Bash', subject: 'a', state: 'finished', atMs: atMs(6) },
      { name: 'Read', subject: 'b', state: 'finished', atMs: atMs(7) },
      { name: 'Edit', state: 'started', atMs: atMs(8) },
      { name: 'Edit', subject: 'c', state: 'finished', atMs: atMs(9) },
    ],
  })
  await log('m1', [[{ t: 'reset' }, ...tool('Read', 'started'), { t: 'reply' }]])
  assert.deepEqual((await tools('m1')).tools, [{ name: 'Read', state: 'started', atMs: atMs(10) }])
})

test('CV-2 a message has the tools of its own rows only', async (t) => {
  const { add, log, tools } = await openChat(t, ['done', 'leased'])
  await log('m1', [tool('One', 'started')])
  await log('m2', [tool('Two', 'started')])
  await log('m2', [tool('Delta', 'started')], { delta: 1 })
  await log('m1', [tool('Of another message', 'started')], { message_id: 'm9' })
  await log('m1', [tool('Of another task', 'started')], { task_id: 'm9' })
  await add({
    events: [1, 2].map((seq) => ({
      workspace_id: 'ws_2',
      seq,
      task_id: 'm8',
      items: JSON.stringify(tool('Elsewhere', 'started')),
    })),
  })
  const names = async (id: string) => (await tools(id)).tools?.map(({ name }) => name)
  assert.deepEqual([await names('m1'), await names('m2')], [['One'], ['Two']])
})

test('CV-2 CV-4 a chat reads 400 rows of tools of a message and says when there may be more', async (t) => {
  const { log, tools } = await openChat(t, ['done', 'done', 'done', 'leased'])
  const many = (count: number) => Array.from({ length: count }, () => tool('Read', 'finished'))
  await log('m1', many(399))
  await log('m2', many(401))
  const counted = async (id: string) => {
    const { tools: shown, hasMoreTools } = await tools(id)
    return [shown?.length, hasMoreTools]
  }
  assert.deepEqual(await counted('m1'), [399, undefined])
  assert.deepEqual(await counted('m2'), [400, true])
  const edited = large(200_000, (subject) => tool('Edit', 'finished', subject))
  await log('m3', [edited, edited])
  assert.deepEqual(
    [await counted('m3'), await counted('m4')],
    [
      [1, true],
      [0, undefined],
    ],
  )
})

test('CV-2 the tools of the newest messages are shown within the bytes of a page', async (t) => {
  const { log, tools } = await openChat(t, ['done', 'done', 'done', 'done', 'done'])
  const edited = large(250_000, (subject) => tool('Edit', 'finished', subject))
  for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) await log(id, [edited])
  assert.deepEqual(await tools('m1'), { tools: [], hasMoreTools: true })
  const { tools: shown, hasMoreTools } = await tools('m2')
  assert.deepEqual([shown?.length, hasMoreTools], [1, undefined])
})

test('CV-2 a running turn shows what it has said so far and its own artifacts, not the replies of other messages', async (t) => {
  const { add, log, reply, sql } = await openChat(t, ['leased'])
  assert.equal(await reply(), undefined)
  await log('m1', [text('of an earlier message')], { message_id: 'm0', delta: 1 })
  await add({ messages: [{ id: 'm0', conversation_id: 'c0', task_id: 'm1' }] })
  assert.equal(await reply(), undefined)
  const artifact = { artifactId: 'a1', parts: [{ text: 'file' }] }
  await log('m1', [[turn({ type: 'artifact', artifact, append: false, lastChunk: true })]])
  assert.deepEqual(await reply(), { parts: [], artifacts: [artifact], isPartial: true })
  await log('m1', [text('he'), text('llo')], { delta: 1 })
  assert.deepEqual(await reply(), { parts: [{ text: 'hello' }], artifacts: [artifact], isPartial: true })
  await sql(`update events set task_id = 'm9' where seq = 2`)
  assert.deepEqual(await reply(), { parts: [{ text: 'hello' }], artifacts: [], isPartial: true })
  await sql(`update messages set state = 'queued'`)
  assert.equal(await reply(), undefined)
})

test('CV-2 what a running turn has said is left out beyond the bytes of a page', async (t) => {
  const { log, reply, sql } = await openChat(t, ['leased'])
  await log('m9', [large(1000, text)], { delta: 1 })
  await log(
    'm1',
    Array.from({ length: 4 }, () => large(MIB / 4, text)),
    { delta: 1 },
  )
  assert.equal(typeof (await reply())?.parts[0]?.text, 'string')
  await log('m1', [text('')], { delta: 1 })
  assert.equal(await reply(), undefined)
  // The tools of the message count too.
  await sql('delete from events where seq > 4')
  await log('m1', [large(100_000, text)], { delta: 1 })
  assert.equal(typeof (await reply())?.parts[0]?.text, 'string')
  await sql('update events set delta = 0 where seq = 4')
  assert.equal(await reply(), undefined)
})
