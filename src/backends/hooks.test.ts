import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listEvents, makeTurn } from '../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../test/harness/process-harness.ts'
import { systemClock } from '../clock.ts'
import { silentLog } from '../log.ts'
import { builtinBackends, createBackendRegistry } from './backends.ts'

/** Runs one turn of `exec`, which echoes, with these options. */
function setUp(t: TestContext) {
  const { processes, dir } = createProcessHarness(t)
  const warnings: string[] = []
  const log = {
    ...silentLog,
    warn: (fields: object, text: string) => warnings.push(`${text} ${JSON.stringify(fields)}`),
  }
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log }
  const build = (options: Record<string, string>) =>
    createBackendRegistry(builtinBackends).build('exec', { cmd: 'cat', ...options }, context)
  const run = async (options: Record<string, string>, text = 'hello') => {
    const turn = makeTurn({ text, workingDir: dir })
    const end = (await listEvents(build(options).run(turn, new AbortController().signal))).at(-1)
    assert.ok(end?.type === 'done' || end?.type === 'failed')
    return end.type === 'done' ? `done ${end.parts[0]?.text}` : `${end.error.code} ${end.error.message}`
  }
  const written = (name: string) => JSON.parse(readFileSync(join(dir, name), 'utf8'))
  return { run, build, dir, warnings, written }
}

test('RT-8 hooks get the message as JSON, before the turn, after an answer and on an error', async (t) => {
  const { run, written, dir } = setUp(t)
  const hooks = { before_turn: 'cat > before', after_turn: 'cat > after', on_error: 'cat > error' }
  assert.equal(await run(hooks), 'done hello')
  assert.deepEqual([written('before').hook, written('before').text], ['before_turn', 'hello'])
  assert.deepEqual(
    [written('after').workspace_id, written('after').state, written('after').reply],
    ['ws_1', 'completed', 'hello'],
  )
  assert.ok(!existsSync(join(dir, 'error')))
  await run({ ...hooks, cmd: 'exit 3' })
  assert.deepEqual([written('error').hook, written('error').error.code], ['on_error', 'exit'])
})

test('RT-8 before_turn refuses a message by exit code 2; its output is the reason, and the agent does not start', async (t) => {
  const { run, dir } = setUp(t)
  const veto = 'read -r line; echo "not on Sundays"; exit 2'
  assert.equal(await run({ before_turn: veto, cmd: 'touch started' }), 'vetoed not on Sundays')
  assert.equal(await run({ before_turn: 'echo why >&2; exit 2' }), 'vetoed why')
  assert.equal(await run({ before_turn: 'exit 2' }), 'vetoed a hook of the workspace refused this message')
  assert.ok(!existsSync(join(dir, 'started')))
})

test('RT-8 a hook that fails, hangs or is missing does not change the turn, and the log says so', async (t) => {
  const { run, warnings } = setUp(t)
  assert.equal(await run({ before_turn: 'exit 1', after_turn: 'exit 2' }), 'done hello')
  assert.equal(await run({ before_turn: 'no-such-hook' }), 'done hello')
  assert.equal(await run({ before_turn: 'yes' }), 'done hello')
  assert.equal(await run({ after_turn: 'sleep 300', hook_timeout: '300ms' }), 'done hello')
  assert.equal(warnings.length, 5)
  assert.match(warnings.at(-1) ?? '', /^a hook failed; the turn goes on .*"hook":"after_turn".*"code":"timeout"/)
})

test('RT-8 a cancelled turn runs no hook after it, and an invalid hook_timeout is refused', async (t) => {
  const { build, dir } = setUp(t)
  assert.throws(() => build({ hook_timeout: 'soon' }), { code: 'bad_config', message: /hook_timeout.*soon/ })
  const stop = new AbortController()
  const backend = build({ cmd: 'touch begun; sleep 300', on_error: 'touch told' })
  const running = listEvents(backend.run(makeTurn({ workingDir: dir }), stop.signal))
  while (!existsSync(join(dir, 'begun'))) await new Promise((resolve) => setTimeout(resolve, 10))
  stop.abort()
  await running
  assert.ok(!existsSync(join(dir, 'told')))
})
