/** The contract of the memory, run on every engine: what is written is found by its words, and only in its namespace. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Store, sql } from '../../src/store/store.ts'
import { readMemories, readMemory, searchMemories } from '../../src/views/memories.ts'
import { createMemories, type Memories, type Memory, type MemoryKind } from '../../src/workspaces/memories.ts'
import type { StoreUnderTest } from './store-contract.ts'

export function memoryContract({ name, open }: StoreUnderTest): void {
  describe(`the memory on ${name}`, () => {
    let store: Store
    let memories: Memories
    let dispose: () => Promise<void>
    before(async () => {
      const opened = await open()
      store = opened.store
      dispose = opened.dispose
      memories = createMemories({
        store,
        find: async (id) => ({ id, ...(id === 'ws_child' && { parentId: 'ws_top' }) }),
      })
    })
    after(() => dispose())

    const commit = async (namespace: string, text: string, kind: MemoryKind = 'memory') =>
      readMemory(store, namespace, await memories.commit({ namespace, text, kind, writtenBy: 'ws_1' }))
    const search = async (namespace: string, query: string, limit = 10) =>
      (await searchMemories(store, { namespace, query, limit })).map(({ text }) => text)
    const texts = async (namespace: string, limit = 100) =>
      (await readMemories(store, { namespace, limit })).memories.map(({ text }) => text)
    const countWordRows = () =>
      store.read(function* () {
        const [row] = yield* sql<{ rows: number }>('select count(*) as rows from memory_words')
        return Number(row?.rows)
      })

    test('TW-7 a memory is found by its words, whatever their case, accents and plural; the best match comes first', async () => {
      await commit('n1', 'The deployment server is called Zürich.')
      await commit('n1', 'Servers of the test run on Tuesdays.')
      await commit('n1', '東京のサーバーは停止しました')
      assert.deepEqual(await search('n1', 'zurich SERVERS'), [
        'The deployment server is called Zürich.',
        'Servers of the test run on Tuesdays.',
      ])
      assert.deepEqual(await search('n1', 'サーバー'), ['東京のサーバーは停止しました'])
      assert.deepEqual(
        await search('n1', 'server', 1),
        ['Servers of the test run on Tuesdays.'],
        'the newer of two equals',
      )
      assert.deepEqual(await search('n1', 'nothing like it'), ['The deployment server is called Zürich.'].slice(1))
      assert.deepEqual(await search('n1', '?! --'), [])
    })

    test('TW-7 a brief gets the best matches and the newest, with their writers', async () => {
      for (const text of ['red one', 'two', 'red red']) await commit('brief', text)
      const shown = (found: readonly Memory[]) => found.map(({ text, writtenBy }) => [text, writtenBy])
      const best = await memories.search({ namespace: 'brief', query: 'red', limit: 2 })
      assert.deepEqual(shown(best), [
        ['red red', 'ws_1'],
        ['red one', 'ws_1'],
      ])
      const [newest] = await memories.newest('brief', 1)
      assert.deepEqual(newest, best[0])
      assert.equal((await memories.newest('brief', 9)).length, 3)
    })

    test('TW-7 a namespace takes 100,000 memories, then it is full until some are forgotten', async () => {
      const fill = `insert into memories (id, namespace, kind, text, hash, written_by, created_at)
        with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 99999)
        select 'mem_full_' || n, 'full', 'memory', 'one of many', 'hash ' || n, 'ws_1', 0 from numbers`
      await store.write(() => sql(fill))
      const last = await commit('full', 'the last one')
      await assert.rejects(commit('full', 'one too many'), {
        code: 'unsupported_operation',
        message: 'full has 100000 memories: forget some first',
      })
      assert.ok(await memories.forget('full', last.id))
      await commit('full', 'now there is room')
      await store.write(() => sql(`delete from memories where namespace = 'full'`))
    })

    test('TW-7 two common words are found together in an old memory', async () => {
      await commit('n2', 'alpha and beta, once')
      for (let count = 0; count < 510; count++) {
        await Promise.all([commit('n2', `alpha ${count}`), commit('n2', `beta ${count}`)])
      }
      assert.equal((await search('n2', 'alpha beta'))[0], 'alpha and beta, once')
      assert.equal((await search('n2', 'alpha', 1000)).length, 500, 'the newest of one word are compared')
    })

    test('TW-7 the same text is one memory, and secrets are masked before they are written', async () => {
      const first = await commit('n3', `the key is sk-${'a'.repeat(30)}`)
      const again = await commit('n3', `the key is sk-${'a'.repeat(30)}`)
      assert.equal(again.id, first.id)
      assert.deepEqual(await texts('n3'), ['the key is [hidden]'])
      assert.deepEqual(await search('n3', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), [])
    })

    test('TW-7 a forgotten memory is gone with its words; another namespace cannot forget it', async () => {
      const rows = await countWordRows()
      const { id } = await commit('n4', 'only for a moment')
      assert.equal(await memories.forget('n5', id), false)
      assert.equal(await memories.forget('n4', id), true)
      assert.equal(await memories.forget('n4', id), false)
      assert.deepEqual([await texts('n4'), await countWordRows()], [[], rows])
    })

    test('TW-7 a summary expires after 30 days, and then its words are deleted too', async () => {
      const rows = await countWordRows()
      const { id, created_at, expires_at } = await commit('n6', 'summary of the week', 'summary')
      assert.equal(Date.parse(expires_at ?? '') - Date.parse(created_at), 30 * 24 * 3600_000)
      assert.equal(await memories.prune(), 0)
      await store.write(function* () {
        yield* sql('update memories set expires_at = now_ms() - 1 where id = $1', [id])
      })
      assert.deepEqual([await texts('n6'), await search('n6', 'summary')], [[], []])
      assert.equal(await memories.prune(), 1)
      assert.equal(await countWordRows(), rows)
    })

    test('TW-7 the list is paged, newest first', async () => {
      for (const text of ['one', 'two', 'three']) await commit('n7', text)
      const page = await readMemories(store, { namespace: 'n7', limit: 2 })
      assert.deepEqual(
        page.memories.map(({ text }) => text),
        ['three', 'two'],
      )
      const rest = await readMemories(store, { namespace: 'n7', limit: 2, cursor: page.next ?? '' })
      assert.deepEqual([rest.memories.map(({ text }) => text), rest.next], [['one'], null])
    })

    test('TW-7 PL-8 a workspace uses its own namespace, that of its children and that of its parent, no other', async () => {
      const resolve = (given: string, id = 'ws_child') => memories.resolveNamespace(id, given)
      assert.equal(await resolve('workspace'), 'workspace:ws_child')
      assert.equal(await resolve('team'), 'team:ws_top')
      assert.equal(await resolve('team', 'ws_top'), 'team:ws_top')
      assert.equal(await resolve('team:ws_child'), 'team:ws_child')
      for (const given of ['workspace:ws_top', 'team:ws_other', 'n1', '']) {
        await assert.rejects(resolve(given), { code: 'forbidden', message: /may not use the memories of/ })
      }
    })

    test('TW-7 a summary of the text of a memory is another one, and is kept longer when it is written again', async () => {
      const memory = await commit('n8', 'red apple')
      const summary = await commit('n8', 'red apple', 'summary')
      assert.match(memory.id, /^mem_[0-9A-Z]{26}$/)
      assert.deepEqual([memory.kind, memory.written_by, memory.expires_at], ['memory', 'ws_1', null])
      await store.write(() => sql('update memories set expires_at = expires_at - 60000 where id = $1', [summary.id]))
      const again = await commit('n8', 'red apple', 'summary')
      assert.equal(again.id, summary.id)
      assert.ok(String(again.expires_at) >= String(summary.expires_at))
      assert.deepEqual((await readMemories(store, { namespace: 'n8', limit: 9 })).memories, [again, memory])
    })

    test('TW-7 a rare word counts more than two common ones, and a word that occurs more often counts more', async () => {
      await commit('n9', 'the rare')
      for (let n = 0; n < 8; n++) await commit('n9', `alpha beta ${n}`)
      assert.deepEqual((await search('n9', 'rare alpha beta')).slice(0, 2), ['the rare', 'alpha beta 7'])
      for (const text of ['apple apple apple', 'apple pie']) await commit('n10', text)
      assert.deepEqual(await search('n10', 'apple'), ['apple apple apple', 'apple pie'])
    })

    test('TW-7 each word of a long memory finds it, and the first 12 words of a query count', async () => {
      const words = Array.from({ length: 43 }, (_, n) => `word${n}x${n}`)
      await commit('n11', words.join(' '))
      for (const word of [words[0], words[42]]) assert.equal((await search('n11', String(word))).length, 1, word)
      for (const text of ['twelfth', 'thirteenth']) await commit('n12', text)
      const eleven = Array.from({ length: 11 }, (_, n) => `other${n}`).join(' ')
      assert.deepEqual(await search('n12', `${eleven} twelfth thirteenth`), ['twelfth'])
    })

    test('TW-7 a namespace is forgotten 50 memories at a time, with their words, and no other is', async () => {
      const rows = await countWordRows()
      await Promise.all(Array.from({ length: 51 }, (_, n) => commit('n13', `number ${n}`)))
      const forgotten = [
        await memories.forgetAll('n13'),
        await memories.forgetAll('n13'),
        await memories.forgetAll('n13'),
      ]
      assert.deepEqual([forgotten, await countWordRows()], [[50, 1, 0], rows])
      assert.equal((await texts('n12')).length, 2)
    })

    test('TW-7 PL-8 a workspace has its own memories and those of its team', async () => {
      assert.deepEqual(await memories.namespacesOf('ws_child'), ['workspace:ws_child', 'team:ws_top'])
      assert.deepEqual(await memories.namespacesOf('ws_top'), ['workspace:ws_top', 'team:ws_top'])
    })

    test('TW-7 no search and no list gives a memory of another namespace', async () => {
      const word = fc.constantFrom('red', 'green', 'blue', 'Red reds', 'x')
      const entry = fc.tuple(
        fc.constantFrom('p', 'p1', 'P', "p' or 1=1"),
        fc.array(word, { minLength: 1, maxLength: 4 }),
      )
      let run = 0
      await fc.assert(
        fc.asyncProperty(fc.array(entry, { maxLength: 12 }), word, async (entries, query) => {
          run += 1
          const inRun = (namespace: string) => `${run} ${namespace}`
          for (const [namespace, words] of entries) await commit(inRun(namespace), `${namespace}: ${words.join(' ')}`)
          for (const [namespace] of entries) {
            const found = [...(await search(inRun(namespace), query, 100)), ...(await texts(inRun(namespace)))]
            assert.ok(
              found.every((text) => text.startsWith(`${namespace}: `)),
              found.join(', '),
            )
          }
        }),
        { numRuns: 40 },
      )
    })
  })
}
