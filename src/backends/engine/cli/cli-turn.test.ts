import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { listEvents } from '../../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { systemClock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { createTurnEngine, type EndEvent } from '../turn-engine.ts'
import { type CliTurn, cliTurnWork } from './cli-turn.ts'

const done = (text: string): EndEvent => ({ type: 'done', parts: [{ text }], finality: 'completed' })

function setUp(t: TestContext) {
  const { processes, owner, dir } = createProcessHarness(t)
  const turns = createTurnEngine({ clock: systemClock, outputBytesMax: 1000 })
  const run = (line: string, more: Partial<CliTurn> = {}, signal = new AbortController().signal) => {
    const turn: CliTurn = {
      run: { command: ['/bin/sh', '-c', line], cwd: dir, env: PLAIN_ENVIRONMENT, mark: 'turn-1', killGraceMs: 200 },
      input: 'hello',
      read: (text) => (text.startsWith('end ') ? [done(text.slice(4))] : [{ type: 'text', delta: text }]),
      conclude: (result, stdout) => {
        const error = new MoleculeError('exit', `${result.end} ${result.exitCode} ${stdout}`)
        return { type: 'failed', error }
      },
      lingerMs: 50,
      ...more,
    }
    return listEvents(turns.run(cliTurnWork(processes, turn), signal))
  }
  return { run, alive: () => markedPids(`${owner}:`).length }
}

test('the input arrives, lines become events, and an end event ends the turn', async (t) => {
  const { run } = setUp(t)
  assert.deepEqual(await run('cat; echo; echo end well; echo too late'), [
    { type: 'text', delta: 'hello' },
    done('well'),
  ])
})

test('a program that stays after its end event is killed after a moment, with its children', linuxOnly, async (t) => {
  const { run, alive } = setUp(t)
  assert.deepEqual((await run('setsid sleep 300 & echo end well; sleep 300')).at(-1), done('well'))
  await waitUntil(() => alive() === 0, 'nothing is left')
})

test('a run without an end event is concluded from its exit and its output', async (t) => {
  const { run } = setUp(t)
  const end = (await run('echo one; printf two; exit 3')).at(-1)
  assert.ok(end?.type === 'failed')
  assert.equal(end.error.message, 'exited 3 one\ntwo')
})

test('a cancel ends the program at once and leaves no process', linuxOnly, async (t) => {
  const { run, alive } = setUp(t)
  const cancel = new AbortController()
  const running = run('setsid sleep 300 & sleep 300', {}, cancel.signal)
  await waitUntil(() => alive() >= 3, 'it is there')
  cancel.abort()
  const end = (await running).at(-1)
  assert.ok(end?.type === 'failed' && end.error.code === 'canceled')
  assert.equal(alive(), 0)
})

test('more output than the limit ends the program, in one line or in many', async (t) => {
  const { run } = setUp(t)
  for (const line of ['yes', "tr '\\0' x < /dev/zero"]) {
    const end = (await run(line, { read: () => [] })).at(-1)
    assert.ok(end?.type === 'failed')
    assert.match(end.error.message, /^output_too_large/)
  }
})

test('a parser that throws ends the turn, not the platform', async (t) => {
  const { run } = setUp(t)
  const read = () => {
    throw new Error('a defect')
  }
  const end = (await run('echo one; sleep 300', { read })).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.message], ['internal', 'a defect'])
})
