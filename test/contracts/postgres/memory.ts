/** The memory on PostgreSQL: which rows the plans of a search read, and the collation of the database. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import { type Row, type Statement, type Store, sql } from '../../../src/store/store.ts'
import { readMemories } from '../../../src/views/memories.ts'
import { createMemories } from '../../../src/workspaces/memories.ts'
import { type GetServer, openStore } from './harness.ts'

const ROWS_OF_A_WORD = 5000
/** The most rows that a search reads of one word. */
const ROWS_READ_MAX = 2000

const FILL = `insert into memory_words (namespace, word, memory_id, count)
  with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${ROWS_OF_A_WORD})
  select 'n', word, 'mem_' || (10000 + n), 1 from numbers, (values ('alpha'), ('beta')) as words(word)`

export function memoryTests(getServer: GetServer): void {
  describe('the memory on PostgreSQL, its plans and collations', () => {
    test('TW-7 a search reads a bounded number of rows, without and with statistics, and with a plan for any word', async (t) => {
      const url = await getServer().url()
      const store = await openStore(t, url)
      await store.write(() => sql(FILL))
      const statements = await statementsOfSearch(store, 'alpha beta')
      assert.equal(statements.length, 4, 'one for each word, one for both, one for the text of a memory')

      const client = new Client({ connectionString: url })
      await client.connect()
      t.after(() => client.end())
      for (const before of ['select 1', 'analyze memory_words']) {
        await client.query(before)
        for (const mode of ['force_custom_plan', 'force_generic_plan']) {
          await client.query(`set plan_cache_mode = ${mode}`)
          for (const statement of statements) {
            const rows = await rowsRead(client, statement)
            assert.ok(rows <= ROWS_READ_MAX, `${before}, ${mode}: ${rows} rows for ${statement.text}`)
          }
        }
      }
    })

    test('TW-7 the list is complete in a database with the collation of a language', async (t) => {
      const client = new Client({ connectionString: await getServer().url('postgres') })
      await client.connect()
      await client.query(`create database english template template0 locale_provider icu icu_locale 'en-US'`)
      await client.end()
      const store = await openStore(t, await getServer().url('english'))
      const memories = createMemories({ store, find: async (id) => ({ id }) })
      for (const text of ['one', 'two', 'three']) {
        await memories.commit({ namespace: 'n', text, kind: 'memory', writtenBy: 'ws_1' })
      }
      const page = await readMemories(store, { namespace: 'n', limit: 2 })
      const rest = await readMemories(store, { namespace: 'n', limit: 2, cursor: page.next ?? '' })
      const texts = [...page.memories, ...rest.memories].map(({ text }) => text)
      assert.deepEqual(texts, ['three', 'two', 'one'])
    })
  })
}

/** The statements that a search sends. */
async function statementsOfSearch(store: Store, query: string): Promise<Statement[]> {
  const statements: Statement[] = []
  const recording: Store = {
    ...store,
    read: (transaction) =>
      store.read(function* () {
        statements.length = 0
        const steps = transaction()
        let step = steps.next([])
        while (!step.done) {
          statements.push(...step.value)
          const rows: Row[][] = yield step.value
          step = steps.next(rows)
        }
        return step.value
      }),
  }
  await createMemories({ store: recording, find: async (id) => ({ id }) }).search({ namespace: 'n', query, limit: 1 })
  return statements
}

/** The rows that the busiest scan of the statement returns, over all its loops. */
async function rowsRead(client: Client, { text, values }: Statement): Promise<number> {
  await client.query(`prepare search as ${text}`)
  const given = values.map((value) => client.escapeLiteral(String(value))).join(', ')
  const { rows } = await client.query(`explain (analyze, timing off) execute search(${given})`)
  await client.query('deallocate search')
  const plan = rows.map((row) => String(row['QUERY PLAN']))
  const scans = plan.map((line) => /\bon memor.*actual rows=([\d.]+) loops=(\d+)/.exec(line))
  return Math.max(...scans.map((scan) => (scan === null ? 0 : Number(scan[1]) * Number(scan[2]))))
}
