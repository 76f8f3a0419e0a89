/** Hints between nodes: heard by others, not by oneself, merged, and `*` whenever some may have been missed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workspaceId } from '../../../src/ids.ts'
import type { Store } from '../../../src/store/store.ts'
import { waitUntil } from '../../harness/wait.ts'
import { type GetServer, openNodes } from './harness.ts'

function listenToStore(store: Store) {
  const heard: (readonly string[] | '*')[] = []
  const stop = store.listen((workspaceIds) => void heard.push(workspaceIds))
  return { heard, stop }
}

export function hintTests(getServer: GetServer): void {
  describe('hints between nodes', () => {
    test('others hear of it, merged, and the one who said it does not', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const own = listenToStore(left)
      const { heard, stop } = listenToStore(right)
      left.notify(['ws_1'])
      left.notify(['ws_2', 'ws_1'])
      await waitUntil(() => heard.length > 0, 'the other node hears')
      assert.deepEqual(heard, [['ws_1', 'ws_2']])
      stop()
      const second = listenToStore(right)
      left.notify(['ws_3'])
      await waitUntil(() => second.heard.length > 0, 'a second listener hears')
      assert.equal(heard.length, 1, 'a listener that stopped hears no more')
      assert.deepEqual(own.heard, [])
    })

    test('more than fits is said as any', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { heard } = listenToStore(right)
      left.notify(Array.from({ length: 1000 }, () => workspaceId()))
      await waitUntil(() => heard.length > 0, 'the other node hears')
      assert.deepEqual(heard, ['*'])
    })

    test('after the database was away a listener is told that it may have missed something', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { heard } = listenToStore(right)
      await getServer().stopServer()
      left.notify(['ws_lost'])
      await getServer().startServer()
      await waitUntil(() => heard.length > 0, 'it hears again')
      assert.deepEqual(heard, ['*'])
      const own = listenToStore(left)
      await waitUntil(() => {
        right.notify(['ws_back'])
        return own.heard.some((said) => said !== '*')
      }, 'the other one is back')
    })

    test('what was said just before the end is said', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      const { heard } = listenToStore(right)
      left.notify(['ws_last'])
      await left.close()
      left.notify(['ws_too_late'])
      await waitUntil(() => heard.length > 0, 'the other node hears')
      assert.deepEqual(heard, [['ws_last']])
    })
  })
}
