/** Hints between nodes: other nodes receive them, merged, and get `*` when some may be lost. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workspaceId } from '../../../src/ids.ts'
import { createDeliveryHints } from '../../../src/inbox/deliver/delivery-hints.ts'
import type { Store } from '../../../src/store/store.ts'
import { waitUntil } from '../../harness/wait.ts'
import { type GetServer, openNodes } from './harness.ts'

function listenToStore(store: Store) {
  const received: (readonly string[] | '*')[] = []
  const stop = store.listen((workspaceIds) => void received.push(workspaceIds))
  return { received, stop }
}

export function hintTests(getServer: GetServer): void {
  describe('hints between nodes', () => {
    test('other nodes receive a hint, merged, and its sender does not', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const own = listenToStore(left)
      const { received, stop } = listenToStore(right)
      left.notify(['ws_1'])
      left.notify(['ws_2', 'ws_1'])
      await waitUntil(() => received.length > 0, 'the other node receives a hint')
      assert.deepEqual(received, [['ws_1', 'ws_2']])
      stop()
      const second = listenToStore(right)
      left.notify(['ws_3'])
      await waitUntil(() => second.received.length > 0, 'a second listener receives a hint')
      assert.equal(received.length, 1, 'a stopped listener receives no more hints')
      assert.deepEqual(own.received, [])
    })

    test('a list that does not fit into a hint is sent as any workspace', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { received } = listenToStore(right)
      left.notify(Array.from({ length: 1000 }, () => workspaceId()))
      await waitUntil(() => received.length > 0, 'the other node receives a hint')
      assert.deepEqual(received, ['*'])
    })

    test('after an outage a listener gets `*`, because hints may be lost', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { received } = listenToStore(right)
      await getServer().stopServer()
      left.notify(['ws_lost'])
      await getServer().startServer()
      await waitUntil(() => received.length > 0, 'it receives hints again')
      assert.deepEqual(received, ['*'])
      const own = listenToStore(left)
      await waitUntil(() => {
        right.notify(['ws_back'])
        return own.received.some((hint) => hint !== '*')
      }, 'the other node is connected again')
    })

    test('GW-6 a delivery that one node has written wakes the doors of another, and a change of a workspace does not', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { received } = listenToStore(right)
      const [writer, reader] = [createDeliveryHints(left), createDeliveryHints(right)]
      let woken = 0
      reader.watch(() => (woken += 1))
      left.notify(['ws_1'])
      await waitUntil(() => received.length > 0, 'the other node receives a hint')
      assert.equal(woken, 0)
      writer.written()
      await waitUntil(() => woken > 0, 'the doors of the other node are woken')
      for (const hints of [writer, reader]) hints.stop()
    })

    test('a hint from just before close is sent', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { received } = listenToStore(right)
      left.notify(['ws_last'])
      await left.close()
      left.notify(['ws_too_late'])
      await waitUntil(() => received.length > 0, 'the other node receives a hint')
      assert.deepEqual(received, [['ws_last']])
    })
  })
}
