import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { startMcpServer } from '../../../test/fakes/mcp/http-server.ts'
import { errorOf, listEvents, makeTurn, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { BackendEvent } from '../backend.ts'
import { createOptions } from '../options.ts'
import { mcp } from './mcp.ts'
import { parseToolResult } from './parse.ts'
import { toolArguments } from './tool-arguments.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'test', 'fakes', 'mcp', 'stdio-server.ts')
const COMMAND = `exec '${process.execPath}' '${PROGRAM}'`

function setUp(t: TestContext, values: Record<string, string>, environment: Record<string, string> = {}) {
  const { processes, owner, dir: workingDir } = createProcessHarness(t)
  const context = {
    processes,
    environment: { ...PLAIN_ENVIRONMENT, ...environment },
    clock: systemClock,
    log: silentLog,
  }
  const backend = mcp.create(createOptions({ ...(values['url'] ? {} : { command: COMMAND }), ...values }), context)
  t.after(() => backend.close())
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const run = (text: string, given: TurnOverrides = {}, signal = new AbortController().signal) =>
    listEvents(backend.run(makeTurn({ text, conversationId: 'c', workingDir, ...given }), signal))
  return { backend, run, alive: () => markedPids(`${owner}:`).length }
}

function doneIn(events: readonly BackendEvent[]) {
  const end = events.at(-1)
  assert.ok(end?.type === 'done', JSON.stringify(end?.type === 'failed' ? end.error.message : end))
  return end.parts
}

test('AG-10 a program stays warm for its conversation, in every revision of the protocol', async (t) => {
  for (const command of [COMMAND, `${COMMAND} --old`]) {
    const { run, alive } = setUp(t, { tool: 'count', command })
    const [pid] = String(doneIn(await run('x'))[0]?.text).split(' ')
    assert.equal(doneIn(await run('x'))[0]?.text, `${pid} 2`)
    assert.equal(alive(), 1)
    const other = String(doneIn(await run('x', { conversationId: 'd' }))[0]?.text)
    assert.match(other, / 1$/)
  }
})

test('AG-10 texts, images, files and links of a result become parts of the reply', async (t) => {
  assert.deepEqual(doneIn(await setUp(t, { tool: 'kinds' }).run('x')), [
    { text: 'look' },
    { raw: 'AAAA', mediaType: 'image/png' },
    { text: 'hello', mediaType: 'text/plain', filename: 'b.txt' },
    { raw: 'BBBB', filename: 'c.bin' },
    { url: 'https://a.test/d', filename: 'd' },
  ])
  const data = parseToolResult({ content: [], structuredContent: { a: 1 } })
  assert.deepEqual(data.type === 'done' && data.parts, [{ data: { a: 1 } }])
})

test('AG-10 the text goes to the named argument, into the template, or to the first required string argument', async (t) => {
  const ask = async (values: Record<string, string>) =>
    JSON.parse(String(doneIn(await setUp(t, { tool: 'search', ...values }).run('cats'))[0]?.text))
  assert.deepEqual(await ask({ arguments: '{"limit":5}' }), { limit: 5, query: 'cats' })
  const template = '{"limit":5,"query":"only {{text}}, please"}'
  assert.deepEqual(await ask({ arguments: template }), { limit: 5, query: 'only cats, please' })
  const named = await ask({ arguments: '{"limit":5,"query":"all"}', argument: 'note' })
  assert.deepEqual(named, { limit: 5, note: 'cats', query: 'all' })
  const none = errorOf(await setUp(t, { tool: 'number' }).run('x'))
  assert.deepEqual([none.code, none.retryable], ['bad_config', false])
  assert.match(none.message, /has no string argument left/)
})

test('AG-10 a failed tool fails with its own message; a missing tool names the existing ones', async (t) => {
  const broken = errorOf(await setUp(t, { tool: 'throw' }).run('x'))
  assert.deepEqual([broken.code, broken.retryable], ['agent_failed', false])
  assert.match(broken.message, /it broke/)
  const missing = errorOf(await setUp(t, { tool: 'nothing' }).run('x'))
  assert.equal(missing.code, 'bad_config')
  assert.match(missing.message, /no tool "nothing"; it has: count, die, echo/)
  const unasked = errorOf(await setUp(t, { tool: 'nothing', argument: 'text' }).run('x'))
  assert.equal(unasked.retryable, false)
})

test('AG-10 the progress of a tool is reported as status', async (t) => {
  const server = await startMcpServer()
  t.after(() => server.stop())
  const program: Record<string, string> = { tool: 'steps' }
  for (const values of [program, { ...program, url: server.url }]) {
    const events = await setUp(t, values).run('x')
    assert.ok(events.some((event) => event.type === 'status' && event.text === 'halfway (1 of 2)'))
  }
})

test('AG-10 the error of a dead program contains its stderr and is retryable; a cancelled call ends its program', async (t) => {
  const died = errorOf(await setUp(t, { tool: 'die' }).run('x'))
  assert.deepEqual([died.code, died.retryable], ['exit', true])
  assert.match(died.message, /no such luck/)
  const { run, alive } = setUp(t, { tool: 'endless' })
  const stop = new AbortController()
  const running = run('x', {}, stop.signal)
  await waitUntil(() => alive() === 2, 'its tool works')
  stop.abort()
  assert.equal(errorOf(await running).code, 'canceled')
  assert.equal(alive(), 0)
  const missing = errorOf(await setUp(t, { tool: 'echo', command: 'exec /nowhere/server' }).run('x'))
  assert.match(missing.message, /not found|127/)
})

test('AG-17 AG-10 every request has the credentials, and each refusal has its own error code', async (t) => {
  const server = await startMcpServer('sk-mcp')
  t.after(() => server.stop())
  const { run } = setUp(
    t,
    { tool: 'echo', url: server.url, token_env: 'KEY', headers: '{"X-Team":"blue"}' },
    { KEY: 'sk-mcp' },
  )
  assert.deepEqual(doneIn(await run('hello')), [{ text: 'hello' }])
  assert.ok(server.seen.every((headers) => headers.get('x-team') === 'blue'))
  assert.equal(errorOf(await setUp(t, { tool: 'echo', url: server.url }).run('x')).code, 'auth_failed')
  server.status = 503
  const away = errorOf(await run('x'))
  assert.deepEqual([away.code, away.retryable], ['provider_failed', true])
  server.status = undefined
  assert.deepEqual(doneIn(await run('again')), [{ text: 'again' }])
  const nowhere = errorOf(await setUp(t, { tool: 'echo', url: 'http://127.0.0.1:9/mcp' }).run('x'))
  assert.deepEqual([nowhere.code, nowhere.retryable], ['provider_failed', true])
})

test('BK-8 AG-10 validate looks for the tool without a call of it', async (t) => {
  const signal = new AbortController().signal
  assert.deepEqual(await setUp(t, { tool: 'count' }).backend.validate(signal), { ok: true, version: 'lab 1.2.3' })
  const missing = await setUp(t, { tool: 'nothing' }).backend.validate(signal)
  assert.ok(!missing.ok && /no tool "nothing"/.test(missing.problem))
  const gone = await setUp(t, { tool: 'echo', command: 'echo oops >&2; exit 3' }).backend.validate(signal)
  assert.ok(!gone.ok && /oops/.test(gone.problem))
})

test('AG-10 an invalid option is refused by its name', (t) => {
  const refused: [Record<string, string>, RegExp][] = [
    [{ tool: '' }, /"tool" is required/],
    [{ tool: 'x', command: '' }, /one of "command" and "url"/],
    [{ tool: 'x', url: 'http://a.test', command: 'y' }, /one of "command" and "url"/],
    [{ tool: 'x', arguments: '[1]' }, /"arguments" must be a JSON object/],
    [{ tool: 'x', max_time: 'soon' }, /"max_time"/],
    [{ tool: 'x', warm_max: '0' }, /"warm_max"/],
  ]
  for (const [values, problem] of refused) assert.throws(() => setUp(t, values), problem)
})

test('AG-13 AG-10 the text arrives unchanged at every place of the template, and every result gives one end', () => {
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(text, fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.integer()), (words, fixed) => {
      const template = { ...fixed, deep: [{ asked: '{{text}}' }] }
      const given = toolArguments(words, { tool: 't', argument: undefined, template })
      assert.deepEqual(given, { ...fixed, deep: [{ asked: words }] })
      assert.deepEqual(toolArguments(words, { tool: 't', argument: 'q', template: fixed }), { ...fixed, q: words })
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.ok(['done', 'failed'].includes(parseToolResult(value).type))
      assert.ok(['done', 'failed'].includes(parseToolResult({ content: [value] }).type))
    }),
    { numRuns: 200 },
  )
})
