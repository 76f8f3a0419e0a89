/** The contract of the list of schedules, run on every engine: pages of bounded rows and bytes, each schedule once. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Store, sql } from '../../src/store/store.ts'
import { createSchedules, type ScheduleDraft, type Schedules } from '../../src/workspaces/schedules.ts'
import type { StoreUnderTest } from './store-contract.ts'

export function scheduleContract({ name, open }: StoreUnderTest): void {
  describe(`the list of schedules on ${name}`, () => {
    let store: Store
    let schedules: Schedules
    let dispose: () => Promise<void>
    before(async () => {
      const opened = await open()
      store = opened.store
      dispose = opened.dispose
      schedules = createSchedules({ store, nowMs: Date.now })
    })
    after(() => dispose())

    /** Reads all pages; the ids. */
    const listAll = async (workspaceId?: string): Promise<string[]> => {
      const ids: string[] = []
      for (let next: string | undefined; ; ) {
        const page = await schedules.list({ workspaceId, after: next })
        ids.push(...page.schedules.map(({ id }) => id))
        next = page.next
        if (next === undefined) return ids
      }
    }

    test('PL-23 a page ends at 30 schedules or at 1 MiB of text, and the pages together have all of them', async () => {
      const add = (id: string) =>
        store.write(() => sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', [id]))
      await add('ws_small')
      await add('ws_large')
      const draft: ScheduleDraft = {
        workspaceId: 'ws_small',
        name: 'hourly',
        cron: '0 * * * *',
        timeZone: 'UTC',
        text: 'look',
        missed: 'once',
        sameConversation: false,
      }
      const [small, large]: [string[], string[]] = [[], []]
      for (let count = 0; count < 31; count++) small.push((await schedules.create(draft)).id)
      const text = 'x'.repeat(500_000)
      for (let count = 0; count < 3; count++)
        large.push((await schedules.create({ ...draft, text, workspaceId: 'ws_large' })).id)
      const first = await schedules.list()
      assert.deepEqual([first.schedules.length, first.next], [30, small[29]])
      assert.deepEqual(await listAll(), [...small, ...large])
      assert.deepEqual(await listAll('ws_small'), small)
      assert.equal((await schedules.list({ workspaceId: 'ws_large' })).schedules.length, 2)
      assert.deepEqual(await listAll('ws_large'), large)
    })
  })
}
