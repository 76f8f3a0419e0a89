/** Permissions of the claude-code backend against a fake claude that runs as a real process. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { PermissionRequest } from '../../src/backends/backend.ts'
import { onAbort } from '../../src/wait.ts'
import { type SetUpClaudeOptions, setUpClaude } from '../fakes/agents/claude-harness.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { errorOf, replyOf, tokenOf } from '../fakes/turns.ts'
import { linuxOnly } from '../harness/live-processes.ts'
import { waitUntil } from '../harness/wait.ts'

const fake = createFakeProgram('claude')
const setUp = (t: TestContext, given: Partial<SetUpClaudeOptions> = {}) => setUpClaude(t, { program: fake, ...given })

test('AG-16 a tool runs when a person allows that call, and not when they deny it', async (t) => {
  const { run } = setUp(t)
  const asked: PermissionRequest[] = []
  const allowing = async (request: PermissionRequest) => {
    asked.push(request)
    return 'allowed' as const
  }
  const allowed = await run('!ask rm -rf build', { ask: allowing })
  assert.deepEqual(asked, [{ id: 'toolu_1', tool: 'Bash', subject: 'rm -rf build' }])
  assert.equal(replyOf(allowed), 'ran {"command":"rm -rf build","description":"what it is for"}')
  const denied = replyOf(await run('!ask rm -rf /', { ask: async () => 'denied' }))
  assert.match(denied, /^was told Permission denied/)
  assert.match(denied, /\(Not allowed in this turn: Bash\.\)$/)
  const broken = await run('!ask x', { ask: () => Promise.reject(new Error('the ask failed')) })
  assert.match(replyOf(broken), /^was told Permission denied/)
})

test('AG-16 an ask without an answer in time is a denial, and the waiting turn frees its warm slot', async (t) => {
  const { run } = setUp(t, { options: { warm_max: '1' } })
  const expiry = Promise.withResolvers<'denied'>()
  const asking = run('!ask sleep', { conversationId: 'asks', ask: () => expiry.promise })
  assert.equal(replyOf(await run('hello', { conversationId: 'other' })), 'hello')
  expiry.resolve('denied')
  assert.match(replyOf(await asking), /^was told Permission denied/)
})

test('AG-16 a turn cancelled while it asks ends at once, and the process stays', linuxOnly, async (t) => {
  const { run, alive } = setUp(t, { clock: manualClock() })
  const sessionToken = tokenOf(await run('one'))
  const cancel = new AbortController()
  const asked = Promise.withResolvers<void>()
  const ask = (_: PermissionRequest, signal: AbortSignal) => {
    asked.resolve()
    return new Promise<'denied'>((resolve) => onAbort(signal, () => resolve('denied')))
  }
  const running = run('!ask forever', { ask, sessionToken }, cancel.signal)
  await asked.promise
  cancel.abort()
  assert.equal(errorOf(await running).code, 'canceled')
  assert.equal(alive(), 1)
  assert.equal(replyOf(await run('two', { sessionToken })), 'two')
})

test('AG-16 a permission that claude requests between turns is denied, so that the next turn is not blocked', async (t) => {
  const program = createFakeProgram('claude')
  const { run } = setUp(t, { program })
  const sessionToken = tokenOf(await run('!wake'))
  const answered = join(program.dir, 'woken.json')
  await waitUntil(() => existsSync(answered) && readFileSync(answered, 'utf8') !== '', 'claude got an answer')
  assert.equal(JSON.parse(readFileSync(answered, 'utf8')).behavior, 'deny')
  assert.equal(replyOf(await run('!count two', { sessionToken })), 'n=2 !wake|!count two')
})

test('AG-16 the reply names tools that were denied without an ask', async (t) => {
  for (const mode of ['session', 'oneshot']) {
    const { run } = setUp(t, { options: { mode, permission: 'allowed_tools' } })
    assert.equal(replyOf(await run('!denied I could not.')), 'I could not.\n\n(Not allowed in this turn: Bash.)')
  }
})

test('AG-16 when claude refuses bypass as root, the error explains IS_SANDBOX', async (t) => {
  const refused = setUp(t, { options: { permission: 'bypass', args: '--fake root' } })
  const error = errorOf(await refused.run('hello'))
  assert.equal(error.code, 'bad_config')
  assert.match(error.message, /IS_SANDBOX=1/)
  const allowed = setUp(t, { options: { permission: 'bypass' }, environment: { IS_SANDBOX: '1' } })
  assert.deepEqual((await allowed.backend.validate(new AbortController().signal)).ok, true)
})
