/** Programs of the owner (exec, stdio) as agents, on the platform and on a bridge: prompt, history, memories, files. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { type PlatformUnderTest, reasonText, replyText, startPlatformFor } from '../harness/platform.ts'

const PROGRAM = join(import.meta.dirname, '..', 'fakes', 'line-program.ts')
const homeOf = ({ dataDir }: PlatformUnderTest, id: string) => join(dataDir, 'workspaces', id.replace('ws_', 'ws-'))
const fileNames = ({ artifacts = [] }: Task) =>
  artifacts.flatMap(({ parts }) => parts.map(({ filename }) => filename)).filter((name) => name !== undefined)
const attachment = (text: string) => ({
  parts: [{ text }, { raw: 'eA==', filename: 'a.txt', mediaType: 'text/plain' }],
})

async function remember(platform: PlatformUnderTest, id: string, text: string) {
  const { status, body } = await platform.request('POST', `/workspaces/${id}/memories`, { text })
  assert.ok(status < 300, JSON.stringify(body))
}

test('RT-17 an exec agent gets prompt, role, memories and history, all as of now, and delivers files', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat; cp "$MOLECULE_ATTACHMENTS"/* "$MOLECULE_OUTBOX"', { role: 'Answers' })
  const task = await platform.send(id, '', attachment('hi'))
  const first = task.artifacts?.find(({ parts }) => parts[0]?.text !== undefined)
  assert.equal(first?.parts[0]?.text, 'hi')
  assert.deepEqual(fileNames(task), ['a.txt'])

  const agent = await platform.exec('cat', { runtime_config: { format: 'json' }, role: 'Answers' })
  const ask = async (text: string, contextId: string) =>
    JSON.parse(replyText(await platform.send(agent, text, { contextId })) ?? '')
  assert.equal((await ask('one', 'c')).system_prompt, 'Your role: Answers')
  writeFileSync(join(homeOf(platform, agent), 'system-prompt.md'), 'You are short.')
  await remember(platform, agent, 'the tea is green')
  const second = await ask('two', 'c')
  assert.match(
    second.system_prompt,
    /^You are short\.\n\nYour role: Answers\n\nWhat you remember[\s\S]*the tea is green$/,
  )
  assert.deepEqual([second.history.length, second.history[0]], [2, { role: 'user', content: 'one' }])
  assert.equal(second.history[1].role, 'assistant')
  assert.ok(!('history' in (await ask('three', 'other'))))
})

test('RT-17 RT-7 where files cannot be used the program is told why, and a caller that they could not', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryHome(t)
  writeFileSync(join(folder, '.molecule'), 'a file in the way')
  const id = await platform.exec('cat', { working_dir: folder, runtime_config: { format: 'json' } })
  const task = await platform.send(id, '', attachment('hi'))
  assert.match(JSON.parse(replyText(task) ?? '').attachments_error, /\.molecule is not a folder: remove it/)
  const { body } = await platform.request('GET', `/messages/${task.id}/story`)
  assert.match(JSON.stringify(body.steps), /a file of the message could not be used/)
  assert.ok(!JSON.stringify(body.steps).includes(folder))
})

test('RT-3 RT-17 the history that a client sent with its first message is still there at the second', async (t) => {
  const platform = await startPlatformFor(t)
  const agent = await platform.exec('cat', { runtime_config: { format: 'json' } })
  const ask = async (text: string, metadata: object) => {
    const message = { messageId: text, contextId: 'c', role: 'ROLE_USER', parts: [{ text }] }
    const { body } = await platform.rpc(agent, 'SendMessage', { message, metadata })
    return JSON.parse(replyText(body.result.task) ?? '').history as { role: string; content: string }[]
  }
  const elsewhere = Array.from({ length: 12 }, (_, n) => ({
    role: n % 2 === 0 ? 'user' : 'agent',
    text: `elsewhere ${n}`,
  }))
  const texts = (history: { content: string }[]) => history.slice(0, 12).map(({ content }) => content)
  const expected = elsewhere.map(({ text }) => text)
  const first = await ask('one', { history: elsewhere })
  assert.deepEqual([first.length, texts(first), first[1]?.role], [12, expected, 'assistant'])
  const second = await ask('two', {})
  assert.deepEqual([second.length, texts(second), second[12]], [14, expected, { role: 'user', content: 'one' }])
})

test('RT-17 an exec agent with pass_meta is told of its peers and asks one with `a2a`', async (t) => {
  const platform = await startPlatformFor(t)
  const lead = await platform.exec('cat "$MOLECULE_SYSTEM_PROMPT_FILE"; a2a delegate shouter "hello"', {
    name: 'lead',
    runtime_config: { pass_meta: true },
  })
  await platform.exec('tr a-z A-Z', { name: 'shouter', role: 'Shouts', parent_id: lead })
  const text = replyText(await platform.send(lead, 'go')) ?? ''
  assert.match(text, /- shouter \(ws_\w+\): Shouts[\s\S]*`a2a delegate <workspace>[\s\S]*HELLO/)
})

test('RT-17 CN-1 a program behind a bridge gets the same brief', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, { role: 'Answers' })
  writeFileSync(join(homeOf(platform, workspace.id), 'system-prompt.md'), 'You are short.')
  const cmd = 'cat "$MOLECULE_SYSTEM_PROMPT_FILE" $MOLECULE_HISTORY_FILE; echo x > "$MOLECULE_OUTBOX/b.txt"'
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd })
  const textOf = ({ artifacts = [] }: Task) =>
    artifacts.flatMap(({ parts }) => parts.map((part) => part.text ?? '')).join('')
  const first = await platform.send(workspace.id, 'one', { contextId: 'c' })
  assert.deepEqual([textOf(first), fileNames(first)], ['You are short.\n\nYour role: Answers', ['b.txt']])
  const second = textOf(await platform.send(workspace.id, 'two', { contextId: 'c' }))
  assert.match(second, /Your role: Answers\[\{"role":"user","content":"one"\},\{"role":"assistant"/)
})

test('RT-17 AG-8 the question of a stdio agent is the status of its task and no artifact', async (t) => {
  const platform = await startPlatformFor(t)
  const cmd = `exec '${process.execPath}' '${PROGRAM}' echo`
  const { body } = await platform.request('POST', '/workspaces', {
    name: 'lines',
    runtime: 'stdio',
    role: 'Asks',
    runtime_config: { cmd },
  })
  const task = await platform.send(body.id, '!ask Which colour?')
  assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED')
  assert.deepEqual([reasonText(task), task.artifacts ?? []], ['Which colour?', []])
  const { metadata } = JSON.parse(replyText(await platform.send(body.id, '!show')) ?? '')
  assert.equal(metadata.molecule.system_prompt, 'Your role: Asks')
})
