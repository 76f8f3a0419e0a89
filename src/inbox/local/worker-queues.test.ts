/** Worker queues: which worker a workspace finds ready, and how many more leases it takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkerQueues } from './worker-queues.ts'

const hosted = { id: 'host.1', workspaces: 'hosted' } as const
const named = { id: 'bridge.1', workspaces: ['w', 'v'] }

test('CN-7 a workspace finds the hosted worker, and a named worker with a free place', () => {
  const queues = createWorkerQueues()
  assert.deepEqual([queues.ready('w'), queues.serves('w')], [{}, false])
  const own = queues.open(hosted)
  assert.deepEqual([queues.ready('w'), queues.serves('w')], [{ hosted: 'host.1' }, false])
  const capacity = { leasesMax: 1, holding: new Set<string>() }
  const bridge = queues.open(named, capacity)
  assert.deepEqual(queues.ready('w'), { hosted: 'host.1', named: 'bridge.1' })
  assert.deepEqual(queues.ready('x'), { hosted: 'host.1' })
  assert.deepEqual([queues.serves('w'), queues.serves('x')], [true, false])
  capacity.holding.add('m.1')
  assert.deepEqual([queues.ready('v'), queues.serves('v')], [{ hosted: 'host.1' }, true])
  assert.deepEqual([queues.get('host.1'), queues.get('bridge.1'), queues.get('x')], [own, bridge, undefined])
  assert.deepEqual([...queues.all()], [own, bridge])
})

test('CN-7 a worker with a capacity takes leases up to it, and counts one that ends as free', () => {
  const queues = createWorkerQueues()
  const queue = queues.open(named, { leasesMax: 2, holding: new Set(['a.1']) })
  assert.deepEqual([queue.free(), queue.accepts()], [1, true])
  queue.capacity?.holding.add('b.1')
  assert.deepEqual([queue.free(), queue.accepts()], [0, false])
  assert.deepEqual(
    [queue.free('a.1'), queue.accepts('a.1'), queue.free('c.1'), queue.accepts('c.1')],
    [1, true, 0, false],
  )
  const own = queues.open(hosted)
  assert.deepEqual([own.free(), own.accepts()], [Number.POSITIVE_INFINITY, true])
})

test('CN-7 a lease that ended takes no capacity of any worker', () => {
  const queues = createWorkerQueues()
  const holding = new Set(['a.1', 'b.1'])
  const queue = queues.open(named, { leasesMax: 2, holding })
  queues.forget('a.1')
  assert.deepEqual([...holding], ['b.1'])
  queues.close(queue)
  queues.forget('b.1')
  assert.deepEqual([...holding], ['b.1'], 'a worker that left has no capacity')
})

test('a worker has one queue at a time', () => {
  const queues = createWorkerQueues()
  const queue = queues.open(hosted)
  assert.throws(() => queues.open(hosted), /worker host.1 has a queue already/)
  queues.close(queue)
  assert.equal(queues.get('host.1'), undefined)
  queues.open(hosted)
})
