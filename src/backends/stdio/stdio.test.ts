import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { errorOf, listEvents, makeTurn, replyOf, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import { createOptions } from '../options.ts'
import { readReply, requestOf } from './a2a-lines.ts'
import { createRestartBackoff, stdio } from './stdio.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'test', 'fakes', 'line-program.ts')

function setUp(t: TestContext, behaviour = 'echo') {
  const { processes, owner, dir: workingDir } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const cmd = `exec '${process.execPath}' '${PROGRAM}' ${behaviour}`
  const backend = stdio.create(createOptions({ cmd }), context)
  t.after(() => backend.close())
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const run = (text: string, given: TurnOverrides = {}, signal = new AbortController().signal) =>
    listEvents(backend.run(makeTurn({ text, workingDir, ...given, request: rawOf(text, given) }), signal))
  return { run, alive: () => markedPids(`${owner}:`).length }
}

/** The request as a door makes it, with the text in the envelope. */
const rawOf = (text: string, given: TurnOverrides) => ({
  raw: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: { parts: [{ text }] } } },
  ...given.request,
})

test('RT-17 a file that the program writes after its answer is not delivered with the answer of another message', async (t) => {
  const { run } = setUp(t)
  assert.equal(replyOf(await run('!writelate secret')), 'written')
  // The answer comes after the late file: the timers of the program run in order.
  const events = await run('!later')
  assert.deepEqual([replyOf(events), events.filter(({ type }) => type === 'artifact')], ['later', []])
})

test('AG-8 one process answers all messages and tells concurrent ones apart by their ids', async (t) => {
  const { run, alive } = setUp(t)
  const texts = Array.from({ length: 30 }, (_, n) => `!slowly ${n}`)
  const replies = await Promise.all(texts.map((text) => run(text)))
  assert.deepEqual(
    replies.map(replyOf),
    texts.map((text) => text.slice('!slowly '.length)),
  )
  assert.match(replyOf(await run('!count')), / 31$/)
  assert.equal(alive(), 1)
})

test('AG-8 when the program dies, its messages fail as retryable and the next message starts a new process', async (t) => {
  const { run } = setUp(t)
  const [first] = replyOf(await run('!count')).split(' ')
  const patient = run('!patient')
  const died = errorOf(await run('!complain'))
  const other = errorOf(await patient)
  assert.deepEqual([died.code, died.retryable, other.code, other.retryable], ['exit', true, 'exit', true])
  assert.match(died.message, /no such luck/)
  const [second, count] = replyOf(await run('!count')).split(' ')
  assert.notEqual(second, first)
  assert.equal(count, '1')
})

test('AG-8 the pause before a restart doubles with each death and an answer resets it', async () => {
  const clock = manualClock()
  const backoff = createRestartBackoff(clock)
  const waits: number[] = []
  const wait = async () => {
    let isOver = false
    const waiting = backoff.wait(new AbortController().signal).then(() => {
      isOver = true
    })
    let waitedMs = 0
    await Promise.resolve()
    while (!isOver && waitedMs < 60_000) {
      clock.advance(50)
      waitedMs += 50
      await new Promise(setImmediate)
    }
    await waiting
    waits.push(waitedMs)
  }
  for (let deaths = 0; deaths < 5; deaths++) {
    backoff.died()
    await wait()
  }
  assert.deepEqual(waits.slice(1), [250, 500, 1000, 2000])
  backoff.answered()
  backoff.died()
  await wait()
  assert.ok((waits.at(-1) ?? 0) <= 50)
})

test('AG-8 a cancel is sent to the program, and a program that does not stop the message is killed', async (t) => {
  const { run, alive } = setUp(t)
  const [pid] = replyOf(await run('!count')).split(' ')
  const cancel = async (text: string) => {
    const stop = new AbortController()
    const running = run(text, {}, stop.signal)
    await run('!echo in between')
    stop.abort()
    return errorOf(await running).code
  }
  assert.equal(await cancel('!patient'), 'canceled')
  assert.equal(replyOf(await run('!count')).split(' ')[0], pid)
  assert.equal(await cancel('!endless'), 'canceled')
  await waitUntil(() => alive() === 0, 'no process of the program is left')
  assert.notEqual(replyOf(await run('!count')).split(' ')[0], pid)
})

test('AG-8 an error of the program is its answer, and data.retryable says whether a retry can help', async (t) => {
  const refused = errorOf(await setUp(t).run('!refuse not today'))
  assert.deepEqual([refused.code, refused.retryable, refused.message], ['agent_failed', false, 'not today'])
  assert.ok(errorOf(await setUp(t, 'echo retryable').run('!refuse later')).retryable)
})

test('AG-8 lines that are not JSON-RPC, and answers without a request, are ignored', async (t) => {
  assert.equal(replyOf(await setUp(t).run('!noise hello')), 'hello')
})

test('AG-8 BK-1 the line is the request as it arrived, and a sender cannot forge the metadata of the platform', async (t) => {
  const raw = {
    jsonrpc: '2.0',
    id: 'theirs',
    method: 'message/send',
    params: { message: { parts: [{ kind: 'text', text: '!show' }] }, metadata: { a: 1, molecule: { sender: 'me' } } },
  }
  const events = await setUp(t).run('!show', { request: { raw, method: 'message/send', caller_id: 'ws_2' } })
  const { message, metadata } = JSON.parse(replyOf(events))
  assert.deepEqual(message, raw.params.message)
  assert.equal(metadata.a, 1)
  const { sender, caller_id: caller, workspace_id: workspace } = metadata.molecule
  assert.deepEqual([sender.name, caller, workspace], ['Ada', 'ws_2', 'ws_1'])
})

test('AG-8 a reply may be a text, a response, an A2A message or an A2A task', () => {
  const part = { text: 'hi' }
  const forms: unknown[] = [
    'hi',
    { parts: [part] },
    { parts: [{ type: 'text', text: 'hi' }], final: true },
    { message: { role: 'ROLE_AGENT', parts: [part] } },
    { kind: 'message', parts: [{ kind: 'text', text: 'hi' }] },
    { task: { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [part] }] } },
    { kind: 'task', status: { state: 'completed', message: { parts: [{ kind: 'text', text: 'hi' }] } } },
  ]
  for (const form of forms) assert.deepEqual(readReply(form), { type: 'done', parts: [part], finality: 'completed' })
  const question = readReply({ status: { state: 'input-required', message: { parts: [part] } } })
  assert.deepEqual(question, { type: 'done', parts: [], finality: 'input_required', said: { parts: [part] } })
  assert.deepEqual(readReply({ status: { state: 'input-required' } }), {
    type: 'done',
    parts: [],
    finality: 'input_required',
  })
  const failed = readReply({ status: { state: 'TASK_STATE_FAILED', message: { parts: [part] } } })
  assert.equal(failed.type === 'failed' && failed.error.message, 'hi')
})

test('RT-17 each line has the prompt with the memories, the history, the attachments and an outbox of its message', async (t) => {
  const { run } = setUp(t)
  const brief = {
    systemPrompt: 'You are short.',
    recalled: 'What you remember: tea',
    peers: 'Peers: none',
    history: [{ messageId: '1', role: 'ROLE_USER', parts: [{ text: 'I am Ada' }] }] as const,
    env: { MOLECULE_WORKSPACE_TOKEN: 'secret' },
  }
  const parts = [{ type: 'file', bytes: Buffer.from('x').toString('base64'), filename: 'a.txt' }] as const
  const shown = replyOf(await run('!show', { ...brief, request: { parts } }))
  const { molecule } = JSON.parse(shown).metadata
  assert.equal(molecule.system_prompt, 'You are short.\n\nWhat you remember: tea')
  assert.deepEqual(molecule.history, [{ role: 'user', content: 'I am Ada' }])
  assert.equal(molecule.attachments[0].name, 'a.txt')
  assert.ok(!shown.includes('secret'))
  const [one, other] = await Promise.all([run('!write one'), run('!write other')])
  for (const [events, text] of [[one, 'one'] as const, [other, 'other'] as const]) {
    const files = events.flatMap((event) => (event.type === 'artifact' ? event.artifact.parts : []))
    assert.deepEqual(
      files.map(({ filename, raw }) => [filename, Buffer.from(raw ?? '', 'base64').toString()]),
      [['note.txt', text]],
    )
  }
})

test('AG-8 AG-13 any reply gives exactly one end, and any request gives one call', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.ok(['done', 'failed'].includes(readReply(value).type))
      const { params } = requestOf({ ...makeTurn({ text: 'x' }).request, raw: value })
      assert.ok(params['message'] !== undefined && !JSON.stringify(params).includes('\n'))
    }),
    { numRuns: 300 },
  )
})
