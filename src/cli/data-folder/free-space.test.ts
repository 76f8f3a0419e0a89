import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import type { Reception } from '../../inbox/reception.ts'
import { silentLog } from '../../log.ts'
import { watchFreeSpace } from './free-space.ts'

const MIB = 1024 * 1024
const admitted = { taskId: 't', contextId: 'c', duplicate: false }
const reception = { admit: async () => admitted, task: async () => undefined } as Partial<Reception> as Reception

async function watch(free: number | undefined, bytesMin = 500 * MIB) {
  const clock = manualClock()
  const disk = { free, asked: 0 }
  const freeBytes = async () => {
    disk.asked += 1
    return disk.free
  }
  const space = await watchFreeSpace({ dataDir: '/data', bytesMin, clock, log: silentLog, freeBytes })
  return { clock, disk, space, guarded: space.guard(reception) }
}

test('RE-7 RE-10 below the floor new messages are refused with disk_low, tasks are read, and space brings it back', async () => {
  const { clock, disk, space, guarded } = await watch(499 * MIB)
  await assert.rejects(guarded.admit(letterTo('w')), { code: 'disk_low', message: /less than 500 MiB free/ })
  await assert.rejects(guarded.send(letterTo('w'), { maxMs: 1 }, AbortSignal.timeout(1000)), { code: 'disk_low' })
  assert.equal(await guarded.task('t'), undefined)
  assert.match(space.reason() ?? '', /500 MiB/)
  disk.free = 500 * MIB
  clock.advance(5000)
  await clock.settle()
  assert.equal(space.reason(), undefined)
  assert.deepEqual(await guarded.admit(letterTo('w')), admitted)
  space.stop()
  clock.advance(60_000)
  assert.equal(disk.asked, 2)
})

test('RE-7 an unknown size is no reason to refuse, and 0 turns the floor off', async () => {
  assert.equal((await watch(undefined)).space.reason(), undefined)
  const off = await watch(0, 0)
  assert.equal(off.space.reason(), undefined)
  assert.equal(off.disk.asked, 0)
})
