import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakeProgram } from '../../../test/fakes/agents/fake-program.ts'
import { errorOf, listEvents, makeTurn, replyOf } from '../../../test/fakes/turns.ts'
import { markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import { createOptions } from '../options.ts'
import { opencode } from './opencode.ts'

const mixed = createFakeProgram('opencode', 'mixed')

test('AG-19 AG-4 the second failed call in a row ends the turn, and its process answers the next one', async (t) => {
  const { processes, owner, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = opencode.create(createOptions({ bin: mixed.path }), context)
  t.after(() => backend.close())
  let sessionToken: string | undefined
  const run = async (text: string) => {
    const known = sessionToken === undefined ? {} : { sessionToken }
    const turn = makeTurn({ text, conversationId: 'c', workingDir: dir, ...known })
    const events = await listEvents(backend.run(turn, new AbortController().signal))
    sessionToken = events.findLast((event) => event.type === 'session')?.token
    return events
  }
  const codeOf = async (text: string) => {
    const { code, retryable } = errorOf(await run(text))
    return [code, retryable]
  }
  assert.equal(replyOf(await run('first')), 'first')
  const pids = markedPids(`${owner}:`)
  assert.deepEqual(await codeOf('fail'), ['overloaded', true])
  // opencode repeats what a repetition can mend, and this it did not repeat.
  assert.deepEqual(await codeOf('fail 1'), ['bad_request', false])
  assert.equal(replyOf(await run('last')), 'last')
  assert.deepEqual(markedPids(`${owner}:`), pids)
})
