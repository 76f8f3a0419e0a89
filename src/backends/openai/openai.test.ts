import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, type TestContext, test } from 'node:test'
import { LLMock } from '@copilotkit/aimock'
import fc from 'fast-check'
import { startChatEndpoint } from '../../../test/fakes/chat-endpoint.ts'
import { errorOf, listEvents, makeTurn, streamedText, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { serve } from '../../../test/harness/loopback-server.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Message } from '../../protocol/a2a.ts'
import { failureSentence } from '../../runtime/failure-sentence.ts'
import type { Backend, BackendEvent } from '../backend.ts'
import { createOptions } from '../options.ts'
import { chatMessages, withoutOldestHalf } from './chat-messages.ts'
import { openai } from './openai.ts'
import { readOpenaiSettings } from './settings.ts'

const endpoint = await startChatEndpoint()
after(() => endpoint.stop())

function build(t: TestContext, values: Record<string, string>, environment: Record<string, string> = {}): Backend {
  const context = {
    processes: createProcessHarness(t).processes,
    environment: { ...PLAIN_ENVIRONMENT, ...environment },
    clock: systemClock,
    log: silentLog,
  }
  const backend = openai.create(createOptions({ model: 'fake', ...values }), context)
  t.after(() => backend.close())
  return backend
}

const run = (t: TestContext, behaviour: string, given: TurnOverrides = { text: 'hi' }) =>
  listEvents(build(t, { url: endpoint.urlFor(behaviour) }).run(makeTurn(given), new AbortController().signal))

function doneIn(events: readonly BackendEvent[]) {
  const end = events.at(-1)
  assert.ok(end?.type === 'done', JSON.stringify(end))
  return end
}

const message = (role: Message['role'], text: string): Message => ({ messageId: text, role, parts: [{ text }] })
const history = [message('ROLE_USER', 'my name is Ada'), message('ROLE_AGENT', 'hello Ada')]

test('AG-9 RT-3 system prompt, history and message are sent in this order, and usage is reported', async (t) => {
  const events = await run(t, 'echo', { text: 'who am I?', systemPrompt: 'Be brief.', history })
  assert.deepEqual(endpoint.calls.at(-1)?.body.messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'my name is Ada' },
    { role: 'assistant', content: 'hello Ada' },
    { role: 'user', content: 'who am I?' },
  ])
  assert.deepEqual(doneIn(events).parts, [{ text: 'who am I?' }])
  assert.deepEqual(
    events.find((event) => event.type === 'usage'),
    { type: 'usage', inputTokens: 11, outputTokens: 5 },
  )
})

test('AG-9 a stream that stops in the middle is a retryable error, never half an answer', async (t) => {
  for (const behaviour of ['cut', 'torn']) {
    const events = await run(t, behaviour)
    assert.equal(streamedText(events), 'half an ans')
    assert.ok(errorOf(events).retryable)
  }
  assert.equal(errorOf(await run(t, 'cut')).code, 'no_end')
  assert.ok(errorOf(await run(t, 'garbage')).retryable)
})

test('AG-9 status and code of a refusal decide its error code', async (t) => {
  const expected = {
    '401': ['auth_failed', false],
    '404': ['bad_config', false],
    '429': ['rate_limited', true],
    quota: ['quota_exhausted', false],
    '503': ['provider_failed', true],
    midstream: ['rate_limited', true],
    tiny: ['context_full', false],
    filter: ['agent_failed', false],
  } as const
  for (const [behaviour, [code, retryable]] of Object.entries(expected)) {
    const error = errorOf(await run(t, behaviour))
    assert.deepEqual([behaviour, error.code, error.retryable], [behaviour, code, retryable])
  }
  assert.equal(errorOf(await run(t, '429')).details['resetAfterMs'], 7000)
  assert.doesNotMatch(errorOf(await run(t, '503')).message, /</)
})

test('AG-9 RT-6 an endpoint that refuses connections, or whose name is unknown, is away and not late', async (t) => {
  const { port, server } = await serve(t, () => undefined)
  server.close()
  await once(server, 'close')
  for (const url of [`http://127.0.0.1:${port}/v1`, 'http://no-such-host.invalid/v1']) {
    const events = await listEvents(build(t, { url }).run(makeTurn({ text: 'hi' }), new AbortController().signal))
    const error = errorOf(events)
    assert.deepEqual([error.code, error.retryable], ['provider_unreachable', true])
    assert.deepEqual(failureSentence(error), {
      category: 'provider_unreachable',
      sentence: 'the model provider cannot be reached',
    })
  }
})

test('AG-9 a conversation that is too long is sent again without its older half', async (t) => {
  const long = Array.from({ length: 8 }, (_, n) => message(n % 2 === 0 ? 'ROLE_USER' : 'ROLE_AGENT', `word ${n}`))
  const events = await run(t, 'small', { text: 'and now?', systemPrompt: 'Be brief.', history: long })
  assert.equal(doneIn(events).finality, 'completed')
  assert.ok(events.some((event) => event.type === 'status' && /too long/.test(event.text)))
  const asked = endpoint.calls.at(-1)?.body.messages.map(({ content }) => content)
  assert.deepEqual(asked, ['Be brief.', 'word 6', 'word 7', 'and now?'])
})

test('AG-9 answers without a stream, with reasoning, with a refusal, or cut off are read', async (t) => {
  assert.deepEqual(doneIn(await run(t, 'whole')).parts, [{ text: 'hi' }])
  assert.equal(streamedText(await run(t, 'thinking')), 'yes')
  const refused = doneIn(await run(t, 'refusal'))
  assert.deepEqual([refused.finality, refused.parts], ['rejected', [{ text: 'I would rather not.' }]])
  const short = await run(t, 'length')
  assert.ok(short.some((event) => event.type === 'status' && /cut off/.test(event.text)))
})

test('AG-9 images are sent as images, data as text, other files by name', async (t) => {
  await run(t, 'echo', {
    parts: [
      { type: 'text', text: 'look' },
      { type: 'file', bytes: 'AAAA', mime_type: 'image/png' },
      { type: 'data', data: { a: 1 } },
      { type: 'file', uri: 'https://a.test/f.pdf', mime_type: 'application/pdf', filename: 'f.pdf' },
    ],
  })
  assert.deepEqual(endpoint.calls.at(-1)?.body.messages.at(-1)?.content, [
    { type: 'text', text: 'look\n{"a":1}\n[attached file: f.pdf, application/pdf, https://a.test/f.pdf]' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
  ])
})

test('AG-17 AG-9 the key comes from the named variable, and OpenAI’s key goes only to OpenAI', async (t) => {
  const keys = { MY_KEY: 'sk-mine', OPENAI_API_KEY: 'sk-openai' }
  const signal = new AbortController().signal
  const ask = async (values: Record<string, string>) => {
    const backend = build(t, { url: endpoint.urlFor('echo'), ...values }, keys)
    doneIn(await listEvents(backend.run(makeTurn({ text: 'x' }), signal)))
    return endpoint.calls.at(-1)?.headers
  }
  assert.equal((await ask({ token_env: 'MY_KEY' }))?.authorization, 'Bearer sk-mine')
  assert.equal((await ask({ headers: '{"X-Team":"blue"}' }))?.['x-team'], 'blue')
  assert.equal((await ask({}))?.authorization, undefined)
  const own = readOpenaiSettings(createOptions({}), keys)
  assert.equal(own.url, 'https://api.openai.com/v1')
  assert.deepEqual(await own.headers(), { Authorization: 'Bearer sk-openai' })
})

test('AG-18 AG-9 the turn’s model wins over the option, and a provider prefix is kept', async (t) => {
  await run(t, 'echo', { text: 'x', model: 'vendor/model-2' })
  assert.equal(endpoint.calls.at(-1)?.body.model, 'vendor/model-2')
  await run(t, 'echo')
  assert.equal(endpoint.calls.at(-1)?.body.model, 'fake')
  const none = build(t, { url: endpoint.urlFor('echo'), model: '' })
  const error = errorOf(await listEvents(none.run(makeTurn({ text: 'x' }), new AbortController().signal)))
  assert.deepEqual([error.code, error.message], ['bad_config', 'no model is set: set "model" of the workspace'])
})

test('AG-9 params add fields to the request, remove them with null, and cannot replace ours', async (t) => {
  const params = '{"temperature":0,"stream_options":null}'
  const backend = build(t, { base_url: `${endpoint.urlFor('echo')}/chat/completions`, params })
  doneIn(await listEvents(backend.run(makeTurn({ text: 'x' }), new AbortController().signal)))
  const { temperature, stream, ...rest } = endpoint.calls.at(-1)?.body ?? ({} as never)
  assert.deepEqual([temperature, stream, 'stream_options' in rest], [0, true, false])
  for (const wrong of ['{"stream":false}', '[]', 'nonsense']) {
    assert.throws(() => build(t, { params: wrong }), { code: 'bad_config', message: /"params"/ })
  }
})

test('BK-8 validate reports a refused login, an unreachable endpoint, and a missing list of models', async (t) => {
  const signal = new AbortController().signal
  const validate = (behaviour: string) => build(t, { url: endpoint.urlFor(behaviour) }).validate(signal)
  assert.deepEqual(await validate('echo'), { ok: true })
  const listless = await validate('404')
  assert.ok(listless.ok && /HTTP 404/.test(listless.note ?? ''))
  const refused = await validate('401')
  assert.ok(!refused.ok && /refuses the login/.test(refused.problem) && /token_file/.test(refused.remedy))
  const away = await build(t, { url: 'http://127.0.0.1:9/v1' }).validate(signal)
  assert.ok(!away.ok && /cannot be reached/.test(away.problem))
})

test('AG-9 an independent fake of the API works: streaming, usage, rate limit', async (t) => {
  const mock = new LLMock({ port: 0, host: '127.0.0.1', strict: true })
  mock.onMessage('colour', { content: 'blue, as the sky is', usage: { input_tokens: 3, output_tokens: 4 } })
  mock.onMessage('limit', { error: { message: 'slow down', type: 'rate_limit' }, status: 429, retryAfter: 2 })
  await mock.start()
  t.after(() => mock.stop())
  const backend = build(t, { url: `${mock.url}/v1` })
  const signal = new AbortController().signal
  const events = await listEvents(backend.run(makeTurn({ text: 'which colour?' }), signal))
  assert.deepEqual(doneIn(events).parts, [{ text: 'blue, as the sky is' }])
  assert.equal(streamedText(events), 'blue, as the sky is')
  const limited = errorOf(await listEvents(backend.run(makeTurn({ text: 'limit' }), signal)))
  assert.deepEqual([limited.code, limited.details['resetAfterMs']], ['rate_limited', 2000])
})

test('AG-13 the last message is the new one, and shortening keeps it and the system prompt', () => {
  const words = fc.string({ minLength: 1, maxLength: 20 })
  const earlier = fc.array(fc.tuple(fc.boolean(), words), { maxLength: 20 })
  fc.assert(
    fc.property(words, fc.string({ maxLength: 20 }), earlier, (text, systemPrompt, before) => {
      const past = before.map(([agent, word]) => message(agent ? 'ROLE_AGENT' : 'ROLE_USER', word))
      let messages = chatMessages(makeTurn({ text, systemPrompt, history: past }))
      assert.equal(messages.length, past.length + 1 + (systemPrompt === '' ? 0 : 1))
      for (;;) {
        assert.deepEqual(messages.at(-1), { role: 'user', content: text })
        if (systemPrompt !== '') assert.deepEqual(messages[0], { role: 'system', content: systemPrompt })
        const shorter = withoutOldestHalf(messages)
        if (shorter === undefined) break
        assert.ok(shorter.length < messages.length)
        messages = shorter
      }
      assert.equal(messages.length, systemPrompt === '' ? 1 : 2)
    }),
    { numRuns: 200 },
  )
})
