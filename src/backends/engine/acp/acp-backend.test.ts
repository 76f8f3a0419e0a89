import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createFakeAgents } from '../../../../test/fakes/agents/fake-program.ts'
import { listEvents, makeTurn, streamedText } from '../../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { systemClock } from '../../../clock.ts'
import { silentLog } from '../../../log.ts'
import { createOptions } from '../../options.ts'
import { readCliSettings } from '../cli/cli-options.ts'
import { type AcpLimits, createAcpBackend } from './acp-backend.ts'

const fake = createFakeAgents()
const NEVER = new AbortController().signal

function createFixture(t: TestContext, scenario: string, limits: AcpLimits) {
  const { processes, owner, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const kind = { backend: 'test', bin: 'x', modes: ['session'], asksIn: ['session'], cannot: [] } as const
  const program = {
    backend: 'test',
    serves: 'workspace' as const,
    settings: readCliSettings(createOptions({}), kind, silentLog),
    model: () => undefined,
    command: () => [fake('acp', scenario)] as const,
    environment: async () => ({}),
    validate: async () => ({ ok: true }) as const,
  }
  const backend = createAcpBackend(program, context, limits)
  t.after(() => backend.close())
  const say = (text: string) => listEvents(backend.run(makeTurn({ text, workingDir: dir }), NEVER))
  return { say, pids: () => markedPids(`${owner}:`) }
}

test('AG-7 a process with too many sessions is replaced, and no answer is lost', linuxOnly, async (t) => {
  const { say, pids } = createFixture(t, 'echo', { turnsMax: 8, sessionsMax: 2 })
  const seen = new Set<number>()
  for (const text of ['one', 'two', 'three', 'four']) {
    assert.equal(streamedText(await say(text)), text)
    for (const pid of pids()) seen.add(pid)
  }
  assert.equal(seen.size, 2)
  await waitUntil(() => pids().length === 1, 'the first has ended')
})

test('AG-7 turns beyond the limit of a process wait, and all are answered', linuxOnly, async (t) => {
  const { say, pids } = createFixture(t, 'mixed', { turnsMax: 2, sessionsMax: 100 })
  const texts = Array.from({ length: 7 }, (_, n) => `message ${n}`)
  const replies = await Promise.all(texts.map(say))
  assert.deepEqual(replies.map(streamedText), texts)
  assert.equal(pids().length, 1)
})
