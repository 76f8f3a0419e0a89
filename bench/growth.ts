/**
 * What a store with many messages costs: send, lists of tasks, the page of a conversation, a search and a start, on a
 * platform with a million stored messages against one with ten thousand (RE-16), in alternating rounds. One message of a
 * thousand has 64 KiB. `npm run bench -- growth 100000` fills fewer; `-- growth 1000000 postgres` measures PostgreSQL.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/clock.ts'
import { silentLog } from '../src/log.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import { type Store, sql } from '../src/store/store.ts'
import { type PlatformUnderTest, startPlatform } from '../test/harness/platform.ts'
import {
  COPIED_TEXT,
  copiedConversation,
  copyMessages,
  MESSAGES_OF_CONVERSATION,
} from '../test/harness/stores/many-messages.ts'
import { startPostgres, type TestPostgres } from '../test/harness/stores/postgres.ts'
import { alternate, median, timeMs } from './measure.ts'

const [large = '1000000', engine = 'sqlite'] = process.argv.slice(2)
const COUNTS = { small: 10_000, large: Number(large) }
const LARGE_EACH = 1000
const ROUNDS = 30
const STARTS = 3
const RATIO_MAX = 2
const REPLY = 'a reply of some words '.repeat(10)

interface FilledPlatform {
  readonly count: number
  readonly dataDir: string
  readonly database?: string
  readonly workspaceId: string
  platform: PlatformUnderTest
}

async function fill(count: number, postgres: TestPostgres | undefined): Promise<FilledPlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'molecule-bench-growth-'))
  const stored = { dataDir, ...(postgres !== undefined && { database: await postgres.url() }) }
  const first = await startPlatform(stored)
  const { body } = await first.request('POST', '/workspaces', {
    name: 'full',
    runtime: 'mock',
    runtime_config: { reply: REPLY },
  })
  const { id: taskId } = await first.send(body.id, COPIED_TEXT)
  await first.stop()
  const store = await openStore(stored)
  const fillMs = await timeMs(() => copyMessages(store, { taskId, count, largeEach: LARGE_EACH }))
  // What the database does by itself within a minute.
  if (store.engine === 'postgres') await store.write(() => sql('analyze'))
  await store.close()
  console.log(`${count} messages stored in ${(fillMs / 1000).toFixed(1)} s`)
  return { ...stored, count, workspaceId: body.id, platform: await startPlatform(stored) }
}

const openStore = async ({ dataDir, database: url }: { dataDir: string; database?: string }): Promise<Store> =>
  url === undefined
    ? openSqlite({ path: join(dataDir, 'molecule.db'), clock: systemClock })
    : openPostgres({ url, clock: systemClock, log: silentLog })

/** What is measured. An answer that is not the expected one fails the run: a fast refusal must not look like speed. */
const MEASURED: Readonly<Record<string, (filled: FilledPlatform) => Promise<unknown>>> = {
  send: ({ platform, workspaceId }) => platform.send(workspaceId, 'hello'),
  'list of tasks': (filled) => list(filled, {}, 50),
  'list of one state': (filled) => list(filled, { status: 'TASK_STATE_FAILED' }, 0),
  'conversation page': async (filled) => {
    const conversation = copiedConversation(Math.floor(filled.count / MESSAGES_OF_CONVERSATION / 2))
    const { messages } = await get(filled, `/conversations/${conversation}`)
    if (messages.length !== MESSAGES_OF_CONVERSATION) throw new Error(`${messages.length} messages`)
  },
  conversations: (filled) => get(filled, '/conversations'),
  search: (filled) => get(filled, '/conversations?search=nowhere'),
}

async function list({ platform, workspaceId }: FilledPlatform, params: object, expected: number): Promise<void> {
  const { body } = await platform.rpc(workspaceId, 'ListTasks', params)
  if (body.result?.tasks.length !== expected) throw new Error(JSON.stringify(body).slice(0, 500))
}

async function get({ platform, workspaceId }: FilledPlatform, path: string) {
  const { status, body } = await platform.request('GET', `/workspaces/${workspaceId}${path}`)
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
  return body
}

async function restart(filled: FilledPlatform): Promise<number> {
  await filled.platform.stop()
  return timeMs(async () => {
    filled.platform = await startPlatform(filled)
  })
}

const server = engine === 'postgres' ? await startPostgres() : undefined
const platforms: FilledPlatform[] = []
try {
  const small = await fill(COUNTS.small, server)
  platforms.push(small)
  const full = await fill(COUNTS.large, server)
  platforms.push(full)
  const results: [string, number, number][] = []
  for (const [name, measure] of Object.entries(MEASURED)) {
    const contenders = { small: () => measure(small), full: () => measure(full) }
    await alternate({ rounds: 3, contenders })
    const times = await alternate({ rounds: ROUNDS, contenders })
    results.push([name, median(times['small'] ?? []), median(times['full'] ?? [])])
  }
  const starts: { small: number[]; full: number[] } = { small: [], full: [] }
  for (let round = 0; round < STARTS; round++) {
    starts.small.push(await restart(small))
    starts.full.push(await restart(full))
  }
  results.push(['start', median(starts.small), median(starts.full)])
  for (const [name, few, many] of results) {
    console.log(
      `${name.padEnd(18)} ${few.toFixed(2).padStart(8)} ms ${many.toFixed(2).padStart(8)} ms   ${(many / few).toFixed(2)}x`,
    )
  }
  const late = results.filter(([, few, many]) => many > few * RATIO_MAX).map(([name]) => name)
  if (late.length > 0) {
    console.error(`more than ${RATIO_MAX}x: ${late.join(', ')}`)
    process.exitCode = 1
  }
} finally {
  for (const { platform, dataDir } of platforms) {
    await platform.dispose()
    rmSync(dataDir, { recursive: true, force: true })
  }
  await server?.stop()
}
