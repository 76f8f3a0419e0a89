/** A new SQLite store in a temporary folder, on a clock that the test moves. Both are removed when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../../src/store/sqlite/sqlite.ts'
import { type Row, type Store, sql, type Value } from '../../../src/store/store.ts'
import { type ManualClock, manualClock } from '../../fakes/manual-clock.ts'
import { insertWorkspace } from './insert-workspace.ts'

/** Noon of a day, UTC. */
export const START_MS = Date.UTC(2026, 0, 15, 12)

export interface SqliteUnderTest {
  readonly store: Store
  readonly clock: ManualClock
  readonly folder: string
  /** Runs one statement, for example to plant a row that only another part of the platform writes. */
  run(text: string, ...values: Value[]): Promise<Row[]>
  /** Inserts a row. The columns that every row of the table needs have values that no test looks at. */
  insert(table: string, row: Readonly<Record<string, Value>>): Promise<void>
  /** Stores a workspace without a folder. Returns its id. */
  addWorkspace(row?: { readonly id?: string; readonly name?: string; readonly hosted?: number }): Promise<string>
}

const NEEDED: Readonly<Record<string, (n: number) => Readonly<Record<string, Value>>>> = {
  messages: (n) => ({
    id: `m${n}`,
    conversation_id: `c${n}`,
    task_id: 't',
    n,
    dedupe: `d${n}`,
    content_hash: '',
    idempotency_key: '',
    envelope: '',
    sender: '',
    admitted_at: 0,
    ready_at: 0,
    expires_at: 0,
  }),
  conversations: (n) => ({ id: `c${n}`, principal: 'people', context_id: `context ${n}` }),
  tasks: (n) => ({
    id: `t${n}`,
    conversation_id: 'c',
    context_id: 'c',
    principal: 'people',
    created_at: 0,
    updated_at: 0,
  }),
  asks: (n) => ({
    id: `a${n}`,
    message_id: `m${n}`,
    workspace_id: 'w',
    epoch: 1,
    question: '',
    asked_at: 0,
    expires_at: 0,
  }),
  deliveries: (n) => ({
    id: `d${n}`,
    task_id: 't',
    message_id: 'm',
    door: 'd',
    channel: 'c',
    body: '',
    next_at: 0,
    created_at: 0,
  }),
  budgets: (n) => ({ id: `b${n}`, limit_usd: 1 }),
  budget_waits: () => ({ workspace_id: 'w', budget_id: 'b', since: 0 }),
  turn_usage: (n) => ({ message_id: `m${n}`, epoch: 1, task_id: 't', outcome: 'done' }),
  presence: () => ({ registered_at: 0, heard_at: 0, report: '{}' }),
  schedules: (n) => ({
    id: `s${n}`,
    name: '',
    cron: '',
    time_zone: '',
    text: '',
    missed: '',
    same_conversation: 0,
    created_at: 0,
  }),
}

/** The end of a test, or of a group of tests. */
export interface TestEnd {
  after(close: () => Promise<void>): void
}

export function openTestStore(t: TestEnd): SqliteUnderTest {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-store-'))
  const clock = manualClock(START_MS)
  const store = openSqlite({ path: join(folder, 'molecule.db'), clock })
  t.after(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  const run = (text: string, ...values: Value[]) => store.write(() => sql(text, values))
  let inserted = 0
  return {
    store,
    clock,
    folder,
    run,
    async insert(table, given) {
      inserted += 1
      const row = { ...NEEDED[table]?.(inserted), ...given }
      const places = Object.keys(row).map((_, index) => `$${index + 1}`)
      await run(`insert into ${table} (${Object.keys(row)}) values (${places})`, ...Object.values(row))
    },
    addWorkspace: (row = {}) => insertWorkspace(store, { role: 'a role', ...row }),
  }
}
