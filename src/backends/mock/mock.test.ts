import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { listEvents, makeTurn, streamedText, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import type { Clock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Backend, BackendEvent } from '../backend.ts'
import { createOptions } from '../options.ts'
import { mock } from './mock.ts'

test('AG-12 reply: echo by default, else the template with every %s the text of the message', async (t) => {
  assert.equal(await reply(build(t, {}), { text: 'hi' }), 'echo: hi')
  assert.equal(await reply(build(t, { reply: 'ok' }), { text: 'hi' }), 'ok')
  assert.equal(await reply(build(t, { reply: '<%s|%s>' }), { text: '$& %s' }), '<$& %s|$& %s>')
})

test('AG-12 delay: the answer comes after the delay, by the clock', async (t) => {
  const waits: number[] = []
  const pass = Promise.withResolvers<() => void>()
  const after = (delayMs: number, callback: () => void) => {
    waits.push(delayMs)
    pass.resolve(callback)
    return () => undefined
  }
  const backend = build(t, { delay: '1m30s' }, { nowMs: () => 0, monotonicMs: () => 0, after })
  const seen: BackendEvent[] = []
  const running = (async () => {
    for await (const event of backend.run(makeTurn({ text: 'hi' }), new AbortController().signal)) seen.push(event)
  })()
  const timePasses = await pass.promise
  assert.deepEqual(seen, [{ type: 'activity' }])
  assert.deepEqual(waits, [90_000])
  timePasses()
  await running
  assert.equal(seen.at(-1)?.type, 'done')
})

test('AG-12 stream: the text in several deltas, cut between characters', async (t) => {
  const text = '👩‍👩‍👧‍👦 漢字 words'
  const whole = await events(build(t, { reply: '%s' }), { text })
  assert.equal(whole.filter(({ type }) => type === 'text').length, 0)
  const streamed = await events(build(t, { reply: '%s', stream: 'true' }), { text })
  assert.ok(streamed.filter(({ type }) => type === 'text').length > 1)
  assert.equal(streamedText(streamed), text)
  for (const event of streamed) if (event.type === 'text') assert.equal(event.delta.isWellFormed(), true)
})

test('AG-12 fail: every turn fails with the message, or the first fail_times of them', async (t) => {
  const always = build(t, { fail: 'out of order' })
  for (let turn = 0; turn < 3; turn += 1) assert.equal(await failure(always), 'exit: out of order')
  const twice = build(t, { fail: 'out of order', fail_times: '2' })
  assert.deepEqual([await failure(twice), await failure(twice)], ['exit: out of order', 'exit: out of order'])
  assert.equal(await reply(twice, { text: 'hi' }), 'echo: hi')
  const once = build(t, { fail_times: '1' })
  assert.equal(await failure(once), 'exit: the mock is configured to fail')
  assert.equal(await reply(once, { text: 'hi' }), 'echo: hi')
})

test('AG-12 usage: token counts when asked for, the same each time', async (t) => {
  const usage = (list: BackendEvent[]) => list.filter(({ type }) => type === 'usage')
  assert.deepEqual(usage(await events(build(t, {}), { text: 'x' })), [])
  const backend = build(t, { usage: 'true', reply: '%s%s' })
  const expected = [{ type: 'usage', inputTokens: 3, outputTokens: 5 }]
  assert.deepEqual(usage(await events(backend, { text: '0123456789' })), expected)
  assert.deepEqual(usage(await events(backend, { text: '0123456789' })), expected)
})

test('AG-12 session: it counts its turns, and a token of another backend starts a new session', async (t) => {
  const silent = await events(build(t, {}), {})
  assert.ok(silent.every((event) => event.type !== 'session'))
  const backend = build(t, { session: 'true' })
  const next = async (sessionToken?: string) => {
    const list = await events(backend, sessionToken === undefined ? {} : { sessionToken })
    return list.find((event) => event.type === 'session')?.token
  }
  assert.equal(await next(), 'mock-1')
  assert.equal(await next('mock-1'), 'mock-2')
  assert.equal(await next('mock-9'), 'mock-10')
  assert.equal(await next('another backend'), 'mock-1')
})

test('AG-12 invalid options are refused with their value', (t) => {
  for (const [key, value] of [
    ['delay', 'soon'],
    ['delay', '-1s'],
    ['stream', 'maybe'],
    ['usage', '1'],
    ['fail_times', 'x'],
  ] as const) {
    assert.throws(() => build(t, { [key]: value }), { code: 'bad_config', message: new RegExp(`"${key}": "${value}"`) })
  }
})

/** Its time stands still. */
const stillClock: Clock = { nowMs: () => 0, monotonicMs: () => 0, after: () => () => undefined }

function build(t: TestContext, values: Record<string, string>, clock = stillClock): Backend {
  const { processes } = createProcessHarness(t)
  return mock.create(createOptions(values), { processes, environment: PLAIN_ENVIRONMENT, clock, log: silentLog })
}

function events(backend: Backend, given: TurnOverrides): Promise<BackendEvent[]> {
  return listEvents(backend.run(makeTurn(given), new AbortController().signal))
}

async function reply(backend: Backend, given: TurnOverrides): Promise<string> {
  const end = (await events(backend, given)).at(-1)
  assert.ok(end?.type === 'done')
  return end.parts.map((part) => part.text ?? '').join('')
}

async function failure(backend: Backend): Promise<string> {
  const end = (await events(backend, { text: 'x' })).at(-1)
  assert.ok(end?.type === 'failed')
  assert.equal(end.error.retryable, true)
  return `${end.error.code}: ${end.error.message}`
}
