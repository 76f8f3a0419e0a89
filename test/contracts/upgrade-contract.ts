/** A store that an earlier version wrote: opening it migrates it, and the waiting messages in it are answered. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { missingMigrations } from '../../src/store/migrations.ts'
import { readStory } from '../../src/views/story/story.ts'
import { letterTo } from '../fakes/letters.ts'
import { createInboxHarness, done } from './inbox/harness.ts'
import type { StoreUnderTest } from './store-contract.ts'

export interface UpgradeUnderTest {
  readonly name: string
  /** Makes a store in which only these statements ran. The returned function opens it with the current program. */
  prepare(statements: string): Promise<StoreUnderTest['open']>
}

export function upgradeContract({ name, prepare }: UpgradeUnderTest): void {
  describe(`a store of an earlier version on ${name}`, () => {
    const versions = missingMigrations(0).slice(0, -1)
    const oldStore = (version: number, rows: string) => {
      const upTo = versions.slice(0, version).map(([number, text]) => `${text}; ${recordVersion(number)}`)
      return prepare(['create table schema_version (version integer not null);', ...upTo, rows].join('\n'))
    }
    for (const [version] of versions) {
      test(`IN-10 a store of version ${version} is migrated, and its waiting messages are answered in order`, async () => {
        const harness = createInboxHarness({ name, open: await oldStore(version, OLD_ROWS) })
        await harness.open()
        try {
          const { reception, inbox } = harness.local
          await harness.withWorker(WORKSPACE, async (worker) => {
            for (const messageId of ['m2', 'm3']) {
              const lease = await worker.lease()
              assert.equal(lease.messageId, messageId)
              await inbox.settle(lease, done(`answer to ${messageId}`))
            }
            const { taskId } = await reception.admit(letterTo(WORKSPACE, { contextId: 'ctx' }))
            const lease = await worker.lease()
            assert.equal(lease.conversationId, 'c1')
            await inbox.settle(lease, done('well'))
            const { tasks } = await reception.list({ workspaceId: WORKSPACE, limit: 10 })
            // On a fast disk the last two change in the same millisecond, so their order is open.
            assert.deepEqual(new Set(tasks.map(({ id }) => id)), new Set([taskId, 't2', 't1']))
          })
          const answers = async (taskId: string) =>
            (await reception.task(taskId))?.artifacts?.map(({ parts }) => parts[0]?.text)
          assert.deepEqual(await answers('t1'), ['answer to m1'])
          assert.deepEqual(await answers('t2'), ['answer to m2', 'answer to m3'])
          assert.equal(await harness.state('t2'), 'TASK_STATE_COMPLETED')
          const findStory = (id: string) => readStory(harness.local.store, { id, scopeOf: () => ({}) })
          for (const id of ['t2', 'm2']) assert.equal((await findStory(id)).message_id, 'm2')
          assert.deepEqual(await harness.load(WORKSPACE), { running: 0, waiting: 0 })
        } finally {
          await harness.close()
        }
      })
    }

    test('IN-4 a turn that runs in a store of version 7 has begun if it is of the platform, or a bridge sent an event', async () => {
      const harness = createInboxHarness({ name, open: await oldStore(7, RUNNING_ROWS) })
      await harness.open()
      try {
        const rows = await harness.sql('select id, begun from messages order by id')
        assert.deepEqual(
          rows.map(({ id, begun }) => [id, Number(begun)]),
          [
            ['bridge', 0],
            ['bridge-event', 1],
            ['platform', 1],
            ['waiting', 0],
          ],
        )
      } finally {
        await harness.close()
      }
    })
  })
}

const recordVersion = (version: number): string => `insert into schema_version (version) values (${version});`

const WORKSPACE = 'ws_01K00000000000000000000000'

interface OldMessage {
  readonly conversationId?: string
  readonly id: string
  readonly taskId: string
  readonly n: number
  readonly state: 'done' | 'queued' | 'leased'
}

const oldMessage = ({ id, conversationId = 'c1', taskId, n, state }: OldMessage): string => {
  const message = { messageId: id, role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const envelope = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  const sender = { kind: 'person', id: 'admin', name: 'admin', door: 'http' }
  const reply =
    state === 'done' ? `'${JSON.stringify({ parts: [{ text: `answer to ${id}` }], artifacts: [] })}'` : 'null'
  const settled = state === 'done' ? '2' : 'null'
  return `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
      envelope, sender, state, admitted_at, ready_at, expires_at, settled_at, reply)
    values ('${id}', '${WORKSPACE}', '${conversationId}', '${taskId}', ${n}, '${id}', '', '${id}', '${JSON.stringify(envelope)}',
      '${JSON.stringify(sender)}', '${state}', 1, 1, 99999999999999, ${settled}, ${reply});
    insert into events (workspace_id, seq, task_id, message_id, at_ms, items)
    values ('${WORKSPACE}', ${n}, '${taskId}', '${id}', 1, '[{"t":"status","state":"TASK_STATE_SUBMITTED"}]');`
}

const oldTask = (id: string, state: string): string =>
  `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
   values ('${id}', '${WORKSPACE}', 'c1', 'ctx', 'people', '${state}', 1, 1);`

/** A completed task, and a task with two waiting messages. */
const OLD_ROWS = `
insert into workspace_load (workspace_id, hosted, slots, waiting, seq) values ('${WORKSPACE}', 0, 1, 2, 3);
insert into conversations (id, workspace_id, principal, context_id, last_n, ready_at)
  values ('c1', '${WORKSPACE}', 'people', 'ctx', 3, 1);
${oldTask('t1', 'TASK_STATE_COMPLETED')}
${oldTask('t2', 'TASK_STATE_SUBMITTED')}
${oldMessage({ id: 'm1', taskId: 't1', n: 1, state: 'done' })}
${oldMessage({ id: 'm2', taskId: 't2', n: 2, state: 'queued' })}
${oldMessage({ id: 'm3', taskId: 't2', n: 3, state: 'queued' })}
`

const runningTurn = (id: string, worker: string, n: number): string => `
insert into conversations (id, workspace_id, principal, context_id, last_n, lease_epoch, worker, lease_until)
  values ('${id}', '${WORKSPACE}', 'people', '${id}', ${n}, 1, '${worker}', 99999999999999);
${oldMessage({ id, conversationId: id, taskId: id, n, state: 'leased' })}`

/** A turn of the platform, two of bridges, of which one has sent an event, and a message that waits. */
const RUNNING_ROWS = `
${runningTurn('platform', 'host.worker', 1)}
${runningTurn('bridge', 'bridge.ws.laptop', 2)}
${runningTurn('bridge-event', 'bridge.ws.laptop', 3)}
update messages set appended = 1 where id = 'bridge-event';
${oldMessage({ id: 'waiting', taskId: 'waiting', n: 4, state: 'queued' })}
`
