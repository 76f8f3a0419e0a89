import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../../test/fakes/agents/fake-agent.ts'
import { streamedText } from '../../../../test/fakes/turns.ts'
import { createReplyBuilder } from '../reply-builder.ts'
import { createUpdateReader } from './update-reader.ts'

/** The updates of the prompt that was answered with this id, in the first recorded session. */
function updatesBefore(agent: string, id: number): readonly unknown[] {
  const updates: unknown[] = []
  for (const line of readSample(`acp/${agent}.from-agent.jsonl`).trim().split('\n')) {
    const message = JSON.parse(line)
    if (message.method === 'session/update') updates.push(message.params.update)
    if (message.method !== undefined) continue
    if (message.id === id) return updates
    updates.length = 0
  }
  throw new Error(`${agent} answered nothing with id ${id}`)
}

function read(updates: readonly unknown[]) {
  const warned: string[] = []
  const warn = (words: string) => warned.push(words)
  const reader = createUpdateReader(createReplyBuilder(), { workingDir: '/w', titlesAreNames: true, warn })
  return { events: updates.flatMap((update) => reader.read(update)), reader, warned }
}

for (const [agent, id, text] of [
  ['claude-agent-acp', 2, 'ok n=1 last=/claude-code) </system-reminder> hi one'],
  ['codex-acp', 2, 'ok n=2 last=hi one'],
  ['gemini', 3, 'ok n=2 last=hi two'],
  ['opencode', 2, 'ok n=1 last=hi one'],
] as const) {
  test(`AG-7 a recorded prompt of ${agent} gives its text without warnings`, () => {
    assert.equal(streamedText(read(updatesBefore(agent, id)).events), text)
  })
}

test("AG-7 opencode's recorded tool starts once and ends once, and the text continues after it", () => {
  const { events } = read(updatesBefore('opencode', 5))
  assert.deepEqual(
    events.filter(({ type }) => type === 'tool'),
    [
      { type: 'tool', name: 'lab_ping_tool', subject: '{"text":"pong?"}', state: 'started' },
      { type: 'tool', name: 'lab_ping_tool', subject: '{"text":"pong?"}', state: 'finished' },
    ],
  )
  assert.equal(streamedText(events), 'tool said: PONG:pong?:acp')
})

test('CV-4 the recorded ends of edits of gemini and opencode have the diff of the file', () => {
  const diffsOf = (agent: string) => {
    const lines = readSample(`acp/${agent}-edit.from-agent.jsonl`).trim().split('\n')
    const { events } = read(lines.map((line) => JSON.parse(line).params.update))
    return events.flatMap((event) => (event.type === 'tool' && event.state === 'finished' ? [event.diffs] : []))
  }
  const path = '/home/dev/shop/a.txt'
  const names = `--- ${path}\n+++ ${path}\n@@ @@\n`
  assert.deepEqual(diffsOf('gemini'), [
    [{ path, diff: `${names}+one\n+two\n+three` }],
    [{ path, diff: `${names} one\n-two\n+2\n three` }],
  ])
  // opencode reports no diff of a new file.
  assert.deepEqual(diffsOf('opencode'), [undefined, [{ path, diff: `${names}-two\n+2` }]])
})

test('AG-19 the events of a call show the tool and the subject of its permission request', () => {
  const { reader } = read([
    { sessionUpdate: 'tool_call', toolCallId: 'c', title: 'bash', kind: 'execute', status: 'pending', rawInput: {} },
  ])
  const asked = { toolCallId: 'c', title: 'ls', kind: 'execute', status: 'pending', rawInput: { command: 'ls' } }
  reader.recordRequest(asked, 'ls')
  reader.recordRequest({ ...asked, kind: 'other', title: 'external_directory' }, 'a folder')
  const input = { command: 'ls', timeout: 5, cwd: '/w' }
  const update = { sessionUpdate: 'tool_call_update', toolCallId: 'c', title: 'ls', kind: 'execute', rawInput: input }
  const events = ['in_progress', 'completed'].flatMap((status) => reader.read({ ...update, status }))
  assert.deepEqual(events, [
    { type: 'tool', name: 'bash', subject: 'ls', state: 'started' },
    { type: 'tool', name: 'bash', subject: 'ls', state: 'finished' },
  ])
})

test('a tool that gemini reports only at its end starts and ends', () => {
  const { events } = read(updatesBefore('gemini', 5))
  const states = events.flatMap((event) => (event.type === 'tool' ? [event.state] : []))
  assert.deepEqual(states, ['started', 'finished'])
})

test('a failed tool of codex-acp is failed, and its warning is for the log', () => {
  const { events, warned } = read(updatesBefore('codex-acp', 5))
  const failed = events.flatMap((event) => (event.type === 'tool' && event.state === 'failed' ? [event.name] : []))
  assert.deepEqual(failed, ['think', 'mcp.lab.ping_tool'])
  assert.match(warned.join(), /^Warning: Model metadata/)
  assert.doesNotMatch(JSON.stringify(events), /Model metadata/)
})

test("codex-acp's system error and claude's cost are kept", () => {
  const status = { sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type: 'systemError' } } } }
  assert.ok(read([status]).reader.sawSystemError())
  assert.equal(read(updatesBefore('claude-agent-acp', 2)).reader.costUsd(), 0.00014000000000000001)
})

test('the text of another message starts a paragraph', () => {
  const chunk = (messageId: string, text: string) => ({
    sessionUpdate: 'agent_message_chunk',
    messageId,
    content: { type: 'text', text },
  })
  assert.equal(
    streamedText(read([chunk('a', 'one'), chunk('a', ' two'), chunk('b', 'three')]).events),
    'one two\n\nthree',
  )
})

test('an image in the answer is an artifact, unless its data is not base64', () => {
  const chunk = (data: string) => ({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'image', data, mimeType: 'image/png', uri: 'file:///tmp/plot.png' },
  })
  const { events } = read([chunk('aGk='), chunk('not base64!')])
  const part = { raw: 'aGk=', mediaType: 'image/png', filename: 'plot.png' }
  const artifact = { artifactId: 'content-1', name: 'plot.png', parts: [part] }
  assert.deepEqual(events, [{ type: 'artifact', artifact, append: false, lastChunk: true }, { type: 'activity' }])
})

test('tool calls beyond ten thousand are not reported', () => {
  const updates = Array.from({ length: 10_050 }, (_, n) => ({ sessionUpdate: 'tool_call', toolCallId: `c${n}` }))
  assert.equal(read(updates).events.filter(({ type }) => type === 'tool').length, 10_000)
})

test('AG-13 no update makes the reader throw, and none ends the turn', () => {
  const kinds = ['agent_message_chunk', 'tool_call', 'tool_call_update', 'usage_update', 'session_info_update', 'new']
  const update = fc.record({
    sessionUpdate: fc.constantFrom(...kinds),
    content: fc.oneof(fc.jsonValue(), fc.record({ type: fc.constantFrom('text', 'image'), text: fc.jsonValue() })),
    toolCallId: fc.jsonValue(),
    status: fc.constantFrom('pending', 'completed', 'failed', 7),
    title: fc.jsonValue(),
    cost: fc.jsonValue(),
    _meta: fc.jsonValue(),
  })
  fc.assert(
    fc.property(fc.array(fc.oneof(update, fc.jsonValue())), (updates) => {
      for (const { type } of read(updates).events) assert.ok(!['done', 'failed'].includes(type))
    }),
    { numRuns: 300 },
  )
})
