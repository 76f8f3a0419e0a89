import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createFakeProgram } from '../../../test/fakes/agents/fake-program.ts'
import { errorOf, listEvents, makeTurn, streamedText } from '../../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import { createOptions } from '../options.ts'
import { gemini, nextMinuteMs } from './gemini.ts'

/** Half of the time that the slow fake takes to start and to open a session. */
const APART_MS = 200

const slow = createFakeProgram('gemini', 'slow')

test('AG-3 a starting gemini does not delete the session that another has just begun', async (t) => {
  const { processes, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = gemini.create(createOptions({ bin: slow.path }), context)
  t.after(() => backend.close())
  const send = (text: string) =>
    listEvents(backend.run(makeTurn({ text, workingDir: dir }), new AbortController().signal))
  const texts = ['one', 'two', 'three']
  const replies = await Promise.all(
    texts.map(async (text, index) => {
      await delay(index * APART_MS)
      return streamedText(await send(text))
    }),
  )
  assert.deepEqual(replies, texts)
  const kept = readdirSync(slow.dir).filter((name) => name.startsWith('session-'))
  const prompts = kept.flatMap((name) => JSON.parse(readFileSync(join(slow.dir, name), 'utf8')) as string[])
  assert.deepEqual(prompts.sort(), texts.toSorted())
})

test('AG-3 RT-6 gemini under a rate limit is stopped at its second refused call, and people see that it tries', async (t) => {
  const { processes, dir } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = gemini.create(createOptions({ bin: createFakeProgram('gemini', 'silent-limit').path }), context)
  t.after(() => backend.close())
  const events = await listEvents(backend.run(makeTurn({ workingDir: dir }), new AbortController().signal))
  const error = errorOf(events)
  assert.deepEqual([error.code, error.retryable], ['rate_limited', true])
  const said = events.flatMap((event) => (event.type === 'status' ? [event.text] : []))
  assert.deepEqual(said, [
    'a call of the model failed: gemini tries it again',
    'a call of the model failed: the turn ends',
  ])
})

test('AG-3 the error of a gemini without a login names no option of another backend', async (t) => {
  const { processes, dir } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = gemini.create(createOptions({ bin: createFakeProgram('gemini', 'needs-login').path }), context)
  t.after(() => backend.close())
  const error = errorOf(await listEvents(backend.run(makeTurn({ workingDir: dir }), new AbortController().signal)))
  assert.equal(error.code, 'auth_failed')
  assert.doesNotMatch(error.message, /auth_method/)
})

test('AG-3 gemini loads no session in the minute in which it began, because that would delete it', () => {
  const noon = Date.UTC(2026, 10, 15, 12)
  assert.deepEqual([nextMinuteMs(noon), nextMinuteMs(noon + 59_999)], [noon + 60_000, noon + 60_000])
})
