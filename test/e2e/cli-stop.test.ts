/** `molecule stop`, `pause` and `resume`: what is cancelled, what waits, and what runs again. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import {
  getTask,
  getWorkspace,
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  waitForFinalTask,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

describe('molecule stop, pause and resume', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const molecule = (...args: string[]) => runCommand(args, { env: { MOLECULE_HOME: platform.dataDir } })
  const succeed = async (...args: string[]) => {
    const { code, out, err } = await molecule(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return out
  }
  const isRunning = (id: string, turns: number) =>
    waitUntil(
      async () => (await getWorkspace(platform, id)).running === turns,
      () => `${turns} turns of ${id} run`,
    )
  /** Sleeps at the text `wait`, but only the first time. */
  const sleeper = (name: string) =>
    platform.exec('read line; if [ "$line" = wait ] && ! [ -e ran ]; then touch ran; sleep 60; fi; echo "did $line"', {
      name,
    })

  test('CL-7 TW-9 a stopped message is cancelled, and resume starts only what waited behind it', async () => {
    const id = await sleeper('stopped')
    const running = await sendWithoutWaiting(platform, id, 'wait')
    await isRunning(id, 1)
    const waiting = await sendWithoutWaiting(platform, id, 'next')
    const line = await succeed('stop', 'stopped')
    assert.ok(line.startsWith(`stopped is paused: canceled 1 message (${running}); 1 message waits for "`), line)
    assert.match(line, /bin\/molecule resume stopped"\n$/)
    assert.equal((await getTask(platform, id, running)).status.state, 'TASK_STATE_CANCELED')
    await isRunning(id, 0)
    assert.match(await succeed('resume', 'stopped'), /^stopped is online/)
    assert.equal(replyText(await waitForFinalTask(platform, id, waiting)), 'did next\n')
    assert.equal((await getTask(platform, id, running)).status.state, 'TASK_STATE_CANCELED')
  })

  test('CL-7 stop --pause keeps the running message, which runs again after resume', async () => {
    const id = await sleeper('kept here')
    const task = await sendWithoutWaiting(platform, id, 'wait')
    await isRunning(id, 1)
    assert.match(
      await succeed('stop', 'kept here', '--pause'),
      /^kept here is paused: .*.*bin\/molecule resume 'kept here'"\n$/,
    )
    await isRunning(id, 0)
    assert.match(await succeed('resume', 'kept here'), /^kept here is online/)
    assert.equal(replyText(await waitForFinalTask(platform, id, task)), 'did wait\n')
  })

  test('CL-7 --all stops, pauses and resumes every workspace; a name or --all is required', async () => {
    const ids = [await platform.exec('sleep 60', { name: 'one' }), await platform.exec('sleep 60', { name: 'two' })]
    for (const id of ids) await sendWithoutWaiting(platform, id, 'x')
    for (const id of ids) await isRunning(id, 1)
    const stopped = JSON.parse(await succeed('stop', '--all', '-o', 'json'))
    assert.ok(ids.every((id) => stopped.find((one: { id: string }) => one.id === id).canceled.length === 1))
    for (const id of ids) await isRunning(id, 0)
    const statuses = async (...args: string[]) =>
      new Set(JSON.parse(await succeed(...args, '-o', 'json')).map(({ status }: { status: string }) => status))
    assert.deepEqual(await statuses('resume', '--all'), new Set(['online']))
    assert.deepEqual(await statuses('pause', '--all'), new Set(['paused']))
    assert.deepEqual(await statuses('resume', '--all'), new Set(['online']))
    for (const args of [['stop'], ['resume'], ['pause', 'one', '--all']]) {
      const { code, err } = await molecule(...args)
      assert.deepEqual([code, err], [2, 'error: name one workspace, or use --all\n'])
    }
  })
})
