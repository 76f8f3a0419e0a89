/**
 * A store with rows that a test writes itself, on a clock that the test moves: readers are tested with times, ties and
 * neighbours that a real run gives only by chance. Columns that a test does not name have a plain value.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Part } from '../../src/protocol/a2a.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Row, type Store, sql, type Value } from '../../src/store/store.ts'
import { SENDER } from './letters.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'

/** The time of the store: noon of a day. */
export const NOON_MS = Date.parse('2026-11-15T12:00:00Z')

type Values = Readonly<Record<string, Value>>

export interface TestRows {
  readonly store: Store
  readonly clock: ManualClock
  /** Inserts rows, table by table, in one transaction. */
  add(tables: Readonly<Record<string, readonly Values[]>>): Promise<void>
  sql(text: string, ...values: Value[]): Promise<Row[]>
}

/** The stored form of a message. */
export const envelopeOf = (parts: readonly Part[] | string, messageId = 'sent'): string => {
  const message = { messageId, role: 'ROLE_USER', parts: typeof parts === 'string' ? [{ text: parts }] : parts }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
}

export const replyOf = (text: string): string => JSON.stringify({ parts: [{ text }], artifacts: [] })

let rows = 0

/** What a row has besides the columns that the test names. */
const DEFAULTS: Readonly<Record<string, (row: Values) => Values>> = {
  workspaces: ({ id }) => ({
    name: id ?? '',
    role: '',
    runtime: 'mock',
    settings: '{}',
    status: 'online',
    created_at: NOON_MS,
  }),
  workspace_load: () => ({ hosted: 1, slots: 1 }),
  conversations: ({ id }) => ({ workspace_id: 'ws_1', principal: 'people', context_id: id ?? '' }),
  tasks: ({ conversation_id: conversation = 'c1' }) => ({
    workspace_id: 'ws_1',
    conversation_id: conversation,
    context_id: conversation,
    principal: 'people',
    state: 'TASK_STATE_COMPLETED',
    created_at: NOON_MS,
    updated_at: NOON_MS,
  }),
  messages: ({ id }) => ({
    workspace_id: 'ws_1',
    conversation_id: 'c1',
    task_id: id ?? '',
    n: 1,
    dedupe: Buffer.from(`row ${++rows}`),
    content_hash: '',
    idempotency_key: id ?? '',
    envelope: envelopeOf('hello'),
    sender: JSON.stringify(SENDER),
    state: 'done',
    admitted_at: NOON_MS,
    ready_at: NOON_MS,
    expires_at: NOON_MS,
  }),
  events: () => ({ workspace_id: 'ws_1', at_ms: NOON_MS }),
  asks: () => ({
    id: '1',
    workspace_id: 'ws_1',
    epoch: 1,
    state: 'open',
    question: '[]',
    asked_at: NOON_MS,
    expires_at: NOON_MS,
  }),
  deliveries: () => ({
    workspace_id: 'ws_1',
    task_id: 't1',
    message_id: 't1',
    door: 'discord',
    channel: 'general',
    body: '{}',
    state: 'pending',
    next_at: NOON_MS,
    created_at: NOON_MS,
  }),
  push_configs: () => ({
    workspace_id: 'ws_1',
    version: '1.0',
    state: 'active',
    next_at: NOON_MS,
    created_at: NOON_MS,
  }),
  turn_usage: () => ({ epoch: 1, workspace_id: 'ws_1', task_id: 't1', outcome: 'done', ended_at: NOON_MS }),
  budgets: () => ({ workspace_id: 'ws_1', limit_usd: 1, state: 'open' }),
  budget_waits: () => ({ workspace_id: 'ws_1', since: NOON_MS }),
  presence: () => ({ registered_at: NOON_MS, heard_at: NOON_MS, report: '{}' }),
}

/** In memory where the system has such a folder: nothing of the store must survive the test. */
const makeFolder = (): string => mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'molecule-rows-'))

/** An empty store with all tables, made once: to copy it is ten times faster than to migrate a new one. */
let emptyStore: Promise<Buffer> | undefined

async function makeEmptyStore(): Promise<Buffer> {
  const folder = makeFolder()
  const path = join(folder, 'molecule.db')
  await openSqlite({ path, clock: manualClock(NOON_MS) }).close()
  const content = readFileSync(path)
  rmSync(folder, { recursive: true })
  return content
}

export async function openStoredRows(t: TestContext): Promise<TestRows> {
  emptyStore ??= makeEmptyStore()
  const content = await emptyStore
  const folder = makeFolder()
  const path = join(folder, 'molecule.db')
  writeFileSync(path, content)
  const clock = manualClock(NOON_MS)
  const store = openSqlite({ path, clock })
  // The open files stay usable, and a test that is killed leaves none behind.
  rmSync(folder, { recursive: true })
  t.after(() => store.close())
  return {
    store,
    clock,
    add: (tables) =>
      store.write(function* () {
        for (const [table, given] of Object.entries(tables)) {
          for (const each of given) {
            const row = { ...DEFAULTS[table]?.(each), ...each }
            const places = Object.keys(row).map((_, index) => `$${index + 1}`)
            yield* sql(`insert into ${table} (${Object.keys(row).join(', ')}) values (${places.join(', ')})`, [
              ...Object.values(row),
            ])
          }
        }
      }),
    sql: (text, ...values) => store.write(() => sql(text, values)),
  }
}
