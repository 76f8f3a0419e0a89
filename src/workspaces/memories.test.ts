import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import type { Statement, Store } from '../store/store.ts'
import { createMemories, type MemoryKind } from './memories.ts'

const DAY_MS = 24 * 3600_000

/** The store, and each statement that it runs. */
function spyOn(store: Store) {
  const texts: string[] = []
  const spied: Store = {
    ...store,
    read: (transaction) => store.read(() => spy(transaction())),
    write: (transaction, key) => store.write(() => spy(transaction()), key),
  }
  function* spy<T>(steps: Generator<readonly Statement[], T, never>): Generator<readonly Statement[], T, never> {
    let step = steps.next()
    while (!step.done) {
      texts.push(...step.value.map(({ text }) => text))
      step = steps.next(yield step.value)
    }
    return step.value
  }
  const count = (part: string) => texts.filter((text) => text.includes(part)).length
  return { spied, count }
}

function openMemories(t: TestContext) {
  const opened = openTestStore(t)
  const { spied, count } = spyOn(opened.store)
  const memories = createMemories({
    store: spied,
    find: async (id) => (id === 'ws_none' ? undefined : { id, ...(id === 'ws_child' && { parentId: 'ws_top' }) }),
  })
  const commit = (namespace: string, text: string, kind: MemoryKind = 'memory') =>
    memories.commit({ namespace, text, kind, writtenBy: 'ws_1' })
  const search = async (namespace: string, query: string, limit = 10) =>
    (await memories.search(namespace, query, limit)).map(({ text }) => text)
  const words = async () =>
    (await opened.run('select namespace, word, memory_id, count from memory_words order by 1, 3, 2')).map((row) =>
      Object.values(row).join(' '),
    )
  /** Memories with these words, from `mem_<prefix>1001` on; the later the newer. */
  const plant = async (namespace: string, prefix: string, { count: rows, of }: { count: number; of: string[] }) => {
    const numbers = `with recursive numbers(n) as (select 1001 union all select n + 1 from numbers where n < ${1000 + rows})`
    await opened.run(`insert into memories (id, namespace, kind, text, hash, written_by, created_at)
      ${numbers} select 'mem_${prefix}' || n, '${namespace}', 'memory', '${prefix}' || n, '${prefix}' || n, 'ws_1', 0 from numbers`)
    for (const word of of)
      await opened.run(`insert into memory_words (namespace, word, memory_id, count)
        ${numbers} select '${namespace}', '${word}', 'mem_${prefix}' || n, 1 from numbers`)
  }
  return { ...opened, memories, commit, search, words, plant, countStatements: count }
}

test('TW-7 PL-8 a workspace has its own memories and those of its team; others are refused with the reason', async (t) => {
  const { memories } = openMemories(t)
  assert.deepEqual(await memories.namespacesOf('ws_child'), ['workspace:ws_child', 'team:ws_top'])
  assert.deepEqual(await memories.namespacesOf('ws_top'), ['workspace:ws_top', 'team:ws_top'])
  const resolve = (id: string, given: string) => memories.resolveNamespace(id, given)
  assert.deepEqual(
    await Promise.all(
      ['workspace', 'workspace:ws_child', 'team', 'team:ws_child', 'team:ws_top'].map((given) =>
        resolve('ws_child', given),
      ),
    ),
    ['workspace:ws_child', 'workspace:ws_child', 'team:ws_top', 'team:ws_child', 'team:ws_top'],
  )
  await assert.rejects(resolve('ws_child', 'team:ws_x'), {
    code: 'forbidden',
    message:
      'the workspace ws_child may not use the memories of team:ws_x; it has workspace:ws_child, team:ws_child, team:ws_top',
    details: { namespace: 'team:ws_x' },
  })
  await assert.rejects(resolve('ws_top', 'team:undefined'), {
    message: 'the workspace ws_top may not use the memories of team:undefined; it has workspace:ws_top, team:ws_top',
  })
  await assert.rejects(resolve('ws_none', 'team'), { code: 'not_found', message: 'there is no workspace ws_none' })
})

test('TW-7 a memory is stored whole; the same text is one memory, and a summary of that text another one', async (t) => {
  const { commit, memories, clock, words } = openMemories(t)
  const memory = await commit('n', 'red red apple')
  const fields = { namespace: 'n', text: 'red red apple', writtenBy: 'ws_1' }
  assert.match(memory.id, /^mem_[0-9A-Z]{26}$/)
  assert.deepEqual(memory, { ...fields, id: memory.id, kind: 'memory', createdAtMs: START_MS })
  const summary = await commit('n', 'red red apple', 'summary')
  const expiresAtMs = START_MS + 30 * DAY_MS
  assert.deepEqual(summary, { ...fields, id: summary.id, kind: 'summary', createdAtMs: START_MS, expiresAtMs })
  clock.advance(5)
  assert.deepEqual(await commit('n', 'red red apple'), memory)
  const again = { ...summary, expiresAtMs: expiresAtMs + 5 }
  assert.deepEqual(await commit('n', 'red red apple', 'summary'), again)
  assert.deepEqual(await memories.list('n', { limit: 10 }), { memories: [again, memory] })
  assert.deepEqual(await words(), [
    ...[`n apple ${memory.id} 1`, `n red ${memory.id} 2`, `n apple ${summary.id} 1`, `n red ${summary.id} 2`],
  ])
})

test('TW-7 each word of a long memory is indexed, in few statements', async (t) => {
  const { commit, words, countStatements } = openMemories(t)
  for (const length of [42, 43]) {
    const before = [countStatements('insert into memory_words'), (await words()).length]
    await commit('n', Array.from({ length }, (_, n) => `word${length}x${n}`).join(' '))
    const after = [countStatements('insert into memory_words'), (await words()).length]
    // One statement a word takes three times as long.
    assert.deepEqual(
      [Number(after[0]) - Number(before[0]), Number(after[1]) - Number(before[1])],
      [length - 39, length],
    )
  }
})

test('TW-7 of two memories with the same words the newer comes first; a word that occurs more often counts more', async (t) => {
  const { commit, search } = openMemories(t)
  await commit('n', 'one for the old')
  await commit('n', 'two for the new')
  assert.deepEqual(await search('n', 'one two'), ['two for the new', 'one for the old'])
  assert.deepEqual(await search('n', 'one two', 1), ['two for the new'])
  await commit('m', 'apple apple apple')
  await commit('m', 'apple pie')
  assert.deepEqual(await search('m', 'apple'), ['apple apple apple', 'apple pie'])
})

test('TW-7 a rare word counts more than two common ones, and less than a common one that occurs often', async (t) => {
  const { commit, search } = openMemories(t)
  await commit('n', 'the rare')
  for (let n = 0; n < 8; n++) await commit('n', `alpha beta ${n}`)
  const found = await search('n', 'rare alpha beta')
  assert.deepEqual([found.length, found[0], found[1]], [9, 'the rare', 'alpha beta 7'])
  await commit('m', 'often often often often')
  for (const text of ['often 1', 'often 2', 'the rare']) await commit('m', text)
  assert.deepEqual((await search('m', 'rare often')).slice(0, 2), ['often often often often', 'the rare'])
})

test('TW-7 the first 12 words of a query count', async (t) => {
  const { commit, search } = openMemories(t)
  await commit('n', 'twelfth')
  await commit('n', 'thirteenth')
  const eleven = Array.from({ length: 11 }, (_, n) => `word${n}`).join(' ')
  assert.deepEqual(await search('n', `${eleven} twelfth thirteenth`), ['twelfth'])
})

test('TW-7 a search gives only live memories of its namespace', async (t) => {
  const { commit, search, clock } = openMemories(t)
  await commit('n', 'apple one')
  await commit('n', 'apple two', 'summary')
  await commit('n', 'pear')
  await commit('m', 'apple three')
  assert.deepEqual(await search('n', 'apple'), ['apple two', 'apple one'])
  clock.advance(30 * DAY_MS - 1)
  assert.deepEqual(await search('n', 'apple'), ['apple two', 'apple one'])
  clock.advance(1)
  assert.deepEqual(await search('n', 'apple'), ['apple one'])
})

test('TW-7 of one word the newest 500 memories are compared', async (t) => {
  const { search, plant } = openMemories(t)
  await plant('n', 'x', { count: 501, of: ['common'] })
  const found = await search('n', 'common', 1000)
  assert.deepEqual([found.length, found[0], found.at(-1)], [500, 'x1501', 'x1002'])
})

test('TW-7 two common words: their common memory is found among the newest 2000 of each, below the newest ones with both', async (t) => {
  const { search, plant } = openMemories(t)
  const both = { count: 1, of: ['alpha', 'beta'] }
  await plant('n', 'a-too-old', both)
  await plant('n', 'b-old', both)
  await plant('n', 'c', { count: 1998, of: ['alpha'] })
  await plant('n', 'd', { count: 1998, of: ['beta'] })
  await plant('n', 'e-new', both)
  await plant('other', 'f', both)
  await plant('n', 'g-neither', { count: 1, of: ['gamma'] })
  const found = await search('n', 'alpha beta', 5000)
  assert.deepEqual(found.slice(0, 2), ['e-new1001', 'b-old1001'])
  // 499 others of each word, and not the one that is too old.
  assert.deepEqual([found.length, found.includes('a-too-old1001')], [1000, false])
})

test('TW-7 two common words that always occur together give the newest 500', async (t) => {
  const { search, plant } = openMemories(t)
  await plant('n', 'x', { count: 1100, of: ['alpha', 'beta'] })
  const found = await search('n', 'alpha beta', 5000)
  assert.deepEqual([found.length, found[0], found.at(-1)], [500, 'x2100', 'x1601'])
})

test('TW-7 the pages of a list: newest first, without gaps, without a cursor on the last one', async (t) => {
  const { commit, memories, clock } = openMemories(t)
  for (const text of ['one', 'two', 'three', 'four']) await commit('n', text)
  await commit('m', 'elsewhere')
  const page = async (limit: number, after?: string) => {
    const found = await memories.list('n', { limit, cursor: after })
    return [found.memories.map(({ text }) => text), found.nextCursor] as const
  }
  const [first, cursor] = await page(2)
  assert.deepEqual([first, typeof cursor], [['four', 'three'], 'string'])
  assert.deepEqual(await page(2, cursor), [['two', 'one'], undefined])
  assert.deepEqual(await page(4), [['four', 'three', 'two', 'one'], undefined])
  await commit('n', 'summary', 'summary')
  assert.deepEqual((await page(1))[0], ['summary'])
  clock.advance(30 * DAY_MS)
  assert.deepEqual((await page(1))[0], ['four'])
})

test('TW-7 a forgotten memory goes with its words; other memories and namespaces keep theirs', async (t) => {
  const { commit, memories, words } = openMemories(t)
  const [gone, kept] = [await commit('n', 'red apple'), await commit('n', 'red pear')]
  const other = await commit('m', 'red apple')
  assert.equal(await memories.forget('m', gone.id), false)
  assert.equal(await memories.forget('n', 'mem_none'), false)
  assert.equal((await words()).length, 6)
  assert.equal(await memories.forget('n', gone.id), true)
  assert.equal(await memories.forget('n', gone.id), false)
  assert.deepEqual(await words(), [
    ...[`m apple ${other.id} 1`, `m red ${other.id} 1`, `n pear ${kept.id} 1`, `n red ${kept.id} 1`],
  ])
  assert.deepEqual((await memories.list('n', { limit: 9 })).memories, [kept])
})

test('TW-7 a namespace is forgotten 50 memories at a time, with their words', async (t) => {
  const { commit, memories, words } = openMemories(t)
  await Promise.all(Array.from({ length: 51 }, (_, n) => commit('n', `number ${n}`)))
  const kept = await commit('m', 'number')
  const forgotten = [await memories.forgetAll('n'), await memories.forgetAll('n'), await memories.forgetAll('n')]
  assert.deepEqual(forgotten, [50, 1, 0])
  assert.deepEqual(await words(), [`m number ${kept.id} 1`])
})

test('TW-7 expired summaries are pruned with their words, and no others', async (t) => {
  const { commit, memories, words, clock } = openMemories(t)
  const memory = await commit('n', 'fact')
  await commit('n', 'early', 'summary')
  clock.advance(1)
  const late = await commit('n', 'late', 'summary')
  clock.advance(30 * DAY_MS)
  assert.deepEqual([await memories.prune(), await memories.prune()], [1, 0])
  assert.deepEqual(await words(), [`n fact ${memory.id} 1`, `n late ${late.id} 1`])
})

test('TW-7 a process counts a namespace again when it has used a quarter of the free room', async (t) => {
  const { commit, plant, countStatements } = openMemories(t)
  await plant('n', 'x', { count: 99_992, of: [] })
  const counted: number[] = []
  for (let n = 0; n < 8; n++) {
    await commit('n', `text ${n}`)
    counted.push(countStatements('count(*)'))
  }
  assert.deepEqual(counted, [1, 1, 1, 2, 2, 3, 4, 5])
  await assert.rejects(commit('n', 'one too many'), {
    code: 'unsupported_operation',
    message: 'n has 100000 memories: forget some first',
  })
  await commit('m', 'elsewhere')
})

test('RE-7 the room of 1000 namespaces is remembered; then all are counted again', async (t) => {
  const { commit, countStatements } = openMemories(t)
  const counted = async (namespace: string, text: string) => {
    const before = countStatements('count(*)')
    await commit(namespace, text)
    return countStatements('count(*)') - before
  }
  await Promise.all(Array.from({ length: 1000 }, (_, n) => commit(`n${n}`, 'first')))
  assert.deepEqual([await counted('n0', 'second'), await counted('n999', 'second')], [0, 0])
  assert.deepEqual([await counted('n1000', 'first'), await counted('n1000', 'second')], [1, 0])
  assert.deepEqual([await counted('n0', 'third'), await counted('n0', 'fourth')], [1, 0])
})
