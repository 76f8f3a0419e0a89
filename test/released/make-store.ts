/**
 * Writes the store of this program's schema to `schema-<number>.jsonl`: `node test/released/make-store.ts`. Run it once
 * for each release, before the next migration, and never again: the file stands for stores that users have.
 */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { missingMigrations } from '../../src/store/migrations.ts'
import { type PlatformUnderTest, replyText, sendWithoutWaiting, startPlatform } from '../harness/platform.ts'
import { DATA_FOLDER, type ReleasedLine, type ReleasedValue } from './released-store.ts'

/** Without the rows that a start of the platform makes itself. */
const OMITTED = new Set(['schema_version', 'readiness', 'presence'])

const schema = missingMigrations(0).length
const target = join(import.meta.dirname, `schema-${schema}.jsonl`)
if (existsSync(target)) throw new Error(`${target} exists: a released store is never written again`)
const dataDir = await mkdtemp(join(tmpdir(), 'molecule-released-'))
const started = await startPlatform({ dataDir })
try {
  const told = await fill(started)
  await started.stop()
  const lines: ReleasedLine[] = [{ schema, madeAtMs: Date.now() }, ...readRows(join(dataDir, 'molecule.db')), ...told]
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  writeFileSync(target, `${text.replaceAll(dataDir, DATA_FOLDER)}\n`)
} finally {
  await started.dispose()
  await rm(dataDir, { recursive: true, force: true })
}

/** Uses what a user would, and returns what the platform then answers. */
async function fill(platform: PlatformUnderTest): Promise<ReleasedLine[]> {
  const create = async (route: string, body: object): Promise<string> => {
    const answer = await platform.request('POST', route, body)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body.id
  }
  const mock = (name: string, config: object, more: object = {}) =>
    create('/workspaces', { name, runtime: 'mock', runtime_config: config, ...more })
  const writer = await mock('writer', { reply: 'written: %s', usage: 'true', cost: '0.01', session: 'true' })
  const broken = await mock('broken', { fail: 'out of paper' }, { max_attempts: 1 })
  const paused = await mock('paused', {})
  const lead = await platform.exec(`a2a delegate ${writer} "the part of a child"`, {
    name: 'lead',
    runtime_config: { pass_meta: 'true' },
  })

  const messages: ReleasedLine[] = []
  const send = async (workspaceId: string, message: Readonly<Record<string, unknown>>) => {
    const sent = { role: 'ROLE_USER', ...message }
    const task = await platform.send(workspaceId, '', sent)
    messages.push({ workspaceId, message: sent, taskId: task.id, reply: replyText(task) ?? '' })
    return task
  }
  const first = await send(writer, { messageId: 'released-1', contextId: 'monday', parts: [{ text: 'one' }] })
  await send(writer, { messageId: 'released-2', contextId: 'monday', parts: [{ text: 'two' }, { data: { n: 2 } }] })
  await send(lead, { messageId: 'released-3', contextId: 'tuesday', parts: [{ text: 'lead' }] })
  const keyed = { idempotency_key: 'released-key' }
  await send(writer, { messageId: 'released-4', metadata: keyed, parts: [{ text: 'with a key' }] })
  const failed = await send(broken, { messageId: 'released-5', contextId: 'friday', parts: [{ text: 'print' }] })
  assert.equal((await platform.request('POST', `/workspaces/${paused}/pause`, {})).status, 200)
  const waiting = await sendWithoutWaiting(platform, paused, 'a message that waits')
  const canceled = await sendWithoutWaiting(platform, paused, 'a message that is cancelled')
  await platform.rpc(paused, 'CancelTask', { id: canceled })

  const schedule = await create(`/workspaces/${writer}/schedules`, { cron: '0 0 1 1 *', text: 'the yearly report' })
  await create(`/workspaces/${writer}/memories`, { text: 'the owner likes short answers' })
  await create('/tokens', { name: 'reader', role: 'viewer' })

  const facts = [writer, broken, paused, lead, first.id, failed.id, waiting, canceled, schedule, 'written: one']
  facts.push(
    'out of paper',
    'a message that waits',
    'yearly report',
    'likes short answers',
    'reader',
    'part of a child',
  )
  const { body: page } = await platform.request('GET', `/workspaces/${writer}/conversations`)
  const conversation = page.conversations.find((one: { context_id: string }) => one.context_id === 'monday').id
  const answers: ReleasedLine[] = []
  for (const route of routesOf({
    writer,
    broken,
    paused,
    lead,
    conversation,
    first: first.id,
    waiting,
    failed: failed.id,
  })) {
    const { status, body } = await platform.request('GET', route)
    const text = JSON.stringify(body)
    answers.push({ get: route, status, has: facts.filter((fact) => text.includes(fact)) })
  }
  return [...answers, ...messages]
}

function routesOf(ids: Readonly<Record<string, string>>): string[] {
  const { writer, first, waiting, failed, conversation } = ids
  const workspaces = [writer, ids['broken'], ids['paused'], ids['lead']]
  const parts = ['', '/activity', '/conversations', '/dead-letters', '/delegations', '/memories', '/rules', '/usage']
  return [
    ...workspaces.flatMap((id) => parts.map((part) => `/workspaces/${id}${part}`)),
    ...[first, waiting, failed].flatMap((id) => [`/tasks/${id}`, `/messages/${id}/story`]),
    ...[`/workspaces/${writer}/conversations/${conversation}`, `/workspaces/${writer}/conversations?search=one`],
    ...[`/workspaces/${writer}/a2a/tasks/${first}`, `/workspaces/${writer}/a2a/tasks`],
    ...['/workspaces', '/schedules', '/tokens', '/needs-you', '/pending', '/overview', '/delegations/open', '/usage'],
    ...['/channels', '/pairings', `/registry/${writer}/peers`, `/registry/discover/${writer}`],
  ]
}

function readRows(path: string): ReleasedLine[] {
  const database = new DatabaseSync(path, { readOnly: true })
  const tables = database.prepare("select name from sqlite_master where type = 'table' order by name").all()
  const names = tables
    .map(({ name }) => String(name))
    .filter((name) => !(OMITTED.has(name) || /^sqlite_|_fts/.test(name)))
  const toValue = (value: unknown): ReleasedValue =>
    value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : (value as string | number | null)
  const lines = names.flatMap((table) =>
    database
      .prepare(`select * from ${table}`)
      .all()
      .map((row) => ({
        table,
        row: Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toValue(value)])),
      })),
  )
  database.close()
  return lines
}
