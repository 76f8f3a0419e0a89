/**
 * `search_memory` with 100,000 memories, on SQLite and on PostgreSQL: the median time of a search in a namespace of 50,000
 * and in one of 50, against a bare `like` search over the same rows, in alternating rounds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/clock.ts'
import { silentLog } from '../src/log.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import { type Store, sql } from '../src/store/store.ts'
import { createMemories } from '../src/workspaces/memories.ts'
import { createRandom } from '../test/crash/random.ts'
import { startPostgres } from '../test/harness/stores/postgres.ts'
import { alternate, median } from './measure.ts'

const MEMORIES = Number(process.argv[2] ?? 100_000)
const WRITTEN_AT_ONCE = 200
const ROUNDS = 40
const MS_MAX = 10
/** A word's rank in this list is about its frequency, as in real texts. */
const VOCABULARY = 20_000
const WORDS_EACH = 12

const random = createRandom(1)
const word = () => `word${Math.floor(VOCABULARY ** (random.whole(1_000_000) / 1_000_000))}`
const sentence = (words: number) => Array.from({ length: words }, word).join(' ')

async function measure(name: string, store: Store): Promise<boolean> {
  const memories = createMemories({ store, find: async (id) => ({ id }) })
  // Half of the memories in one large namespace, the rest in namespaces of 50.
  const namespaceOf = (index: number) => (index % 2 === 0 ? 'workspace:large' : `workspace:${Math.floor(index / 100)}`)
  for (let index = 0; index < MEMORIES; index += WRITTEN_AT_ONCE) {
    const slice = Array.from({ length: WRITTEN_AT_ONCE }, (_, offset) => index + offset)
    const draft = (each: number) => ({ namespace: namespaceOf(each), text: `${each} ${sentence(WORDS_EACH)}` })
    await Promise.all(slice.map((each) => memories.commit({ ...draft(each), kind: 'memory', writtenBy: 'bench' })))
  }
  const like = (query: string) =>
    store.read(() =>
      sql(
        `select id, text from memories where namespace = 'workspace:large' and text like $1 order by id desc limit 10`,
        [`%${query.split(' ')[0]} %`],
      ),
    )
  const contenders = {
    large: () => memories.search({ namespace: 'workspace:large', query: sentence(3), limit: 10 }),
    small: () => memories.search({ namespace: 'workspace:7', query: sentence(3), limit: 10 }),
    like: () => like(sentence(3)),
  }
  await alternate({ rounds: 5, contenders })
  const times = await alternate({ rounds: ROUNDS, contenders })
  const p50 = (key: string) => median(times[key] ?? [])
  console.log(`${name}: ${MEMORIES} memories`)
  console.log(`  half of them in one namespace   ${p50('large').toFixed(2)} ms (at most ${MS_MAX})`)
  console.log(`  a namespace of 50               ${p50('small').toFixed(2)} ms`)
  console.log(
    `  a bare like, one word, unranked ${p50('like').toFixed(2)} ms, ratio ${(p50('like') / p50('large')).toFixed(1)}`,
  )
  return p50('large') <= MS_MAX
}

const folder = mkdtempSync(join(tmpdir(), 'molecule-bench-'))
const sqlite = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
const isSqliteFast = await measure('SQLite', sqlite)
await sqlite.close()
rmSync(folder, { recursive: true })

const server = await startPostgres()
try {
  const postgres = await openPostgres({ url: await server.url(), clock: systemClock, log: silentLog })
  const isPostgresFast = await measure('PostgreSQL', postgres)
  await postgres.close()
  process.exitCode = isSqliteFast && isPostgresFast ? 0 : 1
} finally {
  await server.stop()
}
