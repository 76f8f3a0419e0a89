import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { listEvents } from '../../../test/fakes/turns.ts'
import { eventually, linuxOnly, markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { MoleculeError } from '../../errors.ts'
import type { BackendEvent } from '../backend.ts'
import { createOneShots, type OneShot } from './one-shot.ts'

const never = new AbortController().signal

test('events come while the process runs, and the end comes last', linuxOnly, async (t) => {
  const { shots, shot, alive } = setUp(t)
  const seen: string[] = []
  // The second word is printed only when the first has been read: it must not wait for the end.
  const line = 'printf one; while [ ! -e go ]; do sleep 0.01; done; printf two'
  for await (const event of shots.run(shot(line), never)) {
    if (event.type === 'text' && event.delta === 'one') {
      assert.ok(alive())
      await shots.run(shot('touch go'), never)[Symbol.asyncIterator]().next()
    }
    seen.push(event.type === 'text' ? event.delta : event.type)
  }
  assert.deepEqual(seen, ['one', 'two', 'done'])
})

test('a description that throws fails its turn and ends its process, and harms nobody else', linuxOnly, async (t) => {
  const { shots, shot, alive } = setUp(t)
  const defect = () => {
    throw new Error('cannot parse')
  }
  const broken = await listEvents(shots.run({ ...shot('echo x; sleep 300'), read: defect }, never))
  assert.deepEqual(broken.map(failureOf), ['internal: cannot parse'])
  assert.ok(!alive())
  const brokenEnd = await listEvents(shots.run({ ...shot('true'), end: defect }, never))
  assert.deepEqual(brokenEnd.map(failureOf), ['internal: cannot parse'])
})

test('a reader that walks away in the middle ends the process', linuxOnly, async (t) => {
  const { shots, shot, alive } = setUp(t)
  for await (const _ of shots.run(shot('echo x; sleep 300'), never)) break
  assert.ok(!alive())
})

test('close waits until its processes are dead, and what is run later is canceled unstarted', linuxOnly, async (t) => {
  const { shots, shot, alive } = setUp(t)
  const running = listEvents(shots.run(shot('sleep 300'), never))
  await eventually('it runs', alive)
  await shots.close()
  assert.ok(!alive())
  assert.deepEqual((await running).map(failureOf), ['canceled'])
  assert.deepEqual((await listEvents(shots.run(shot('sleep 300'), never))).map(failureOf), ['canceled'])
})

function setUp(t: TestContext) {
  const { processes, owner, dir } = createProcessHarness(t)
  let marks = 0
  const shot = (line: string): OneShot => {
    marks += 1
    const limits = { outputBytesMax: 1_000, stderrBytesKept: 0, killGraceMs: 100 }
    const command = ['/bin/sh', '-c', line] as const
    return {
      run: { command, cwd: dir, env: PLAIN_ENVIRONMENT, mark: `shot-${marks}`, input: '', ...limits },
      read: (chunk) => [{ type: 'text', delta: new TextDecoder().decode(chunk) }],
      end: ({ end }) =>
        end === 'exited'
          ? { type: 'done', parts: [], finality: 'completed' }
          : { type: 'failed', error: new MoleculeError('canceled', '') },
    }
  }
  return { shots: createOneShots(processes), shot, alive: () => markedPids(`${owner}:`).length > 0 }
}

function failureOf(event: BackendEvent): string {
  if (event.type !== 'failed') return event.type
  return [event.error.code, event.error.message].filter((word) => word !== '').join(': ')
}
