/** Bytes of a stored reply that changed on the disk: the reply is not served, and a person learns of it. */

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { type PlatformUnderTest, replyText, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { startPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'

interface Place {
  readonly dataDir: string
  readonly database?: string
  /** Changes the amount in the stored reply and nothing else. */
  readonly change: () => Promise<void>
}

const ENGINES: Readonly<Record<string, (t: TestContext) => Promise<Place>>> = {
  async SQLite(t) {
    const dataDir = temporaryDir(t)
    const path = join(dataDir, 'molecule.db')
    const change = async () => {
      const bytes = readFileSync(path, 'latin1')
      assert.ok(bytes.includes('paid: transfer 100 EUR'))
      writeFileSync(path, bytes.replaceAll('paid: transfer 100 EUR', 'paid: transfer 900 EUR'), 'latin1')
    }
    return { dataDir, change }
  },
  async PostgreSQL(t) {
    const server = await startPostgres()
    t.after(() => server.stop())
    const database = await server.url()
    const change = async () => {
      const client = new Client({ connectionString: database })
      await client.connect()
      await client.query("update messages set reply = replace(reply, '100 EUR', '900 EUR')")
      await client.end()
    }
    return { dataDir: temporaryDir(t), database, change }
  },
}

for (const [engine, open] of Object.entries(ENGINES)) {
  test(`RE-10 a reply that was changed on the disk is not served, and needs you, on ${engine}`, async (t) => {
    const { change, ...place } = await open(t)
    const before = await startPlatformFor(t, place)
    const created = { name: 'clerk', runtime: 'mock', runtime_config: { reply: 'paid: %s' } }
    const { body } = await before.request('POST', '/workspaces', created)
    const id: string = body.id
    const changed = await before.send(id, 'transfer 100 EUR', { messageId: 'first', contextId: 'monday' })
    const other = await before.send(id, 'transfer 7 USD', { contextId: 'monday' })
    assert.equal(replyText(changed), 'paid: transfer 100 EUR')
    assert.equal(await before.stop(), 0)
    await change()

    const platform = await startPlatformFor(t, place)
    await waitUntil(async () => (await needs(platform)).length > 0, 'the scrub finds the reply')
    const [need] = await needs(platform)
    assert.deepEqual([need.kind, need.task_id, need.workspace_id], ['damaged_reply', changed.id, id])
    await refusesOnly(platform, { id, changed: changed.id, other: other.id })

    const [dismiss] = need.actions
    assert.equal((await platform.request(dismiss.method, dismiss.path)).status, 204)
    assert.deepEqual(await needs(platform), [])
    assert.equal((await platform.request('GET', '/workspaces')).body.workspaces[0].needs_you, null)
  })
}

const needs = async (platform: PlatformUnderTest) => (await platform.request('GET', '/needs-you')).body.needs_you

/** Asks for the changed reply in every way, and for another one of the same conversation. */
async function refusesOnly(
  platform: PlatformUnderTest,
  { id, changed, other }: { readonly id: string; readonly changed: string; readonly other: string },
): Promise<void> {
  const message = { messageId: 'first', contextId: 'monday', role: 'ROLE_USER', parts: [{ text: 'transfer 100 EUR' }] }
  for (const [method, params] of [
    ['GetTask', { id: changed }],
    ['SendMessage', { message }],
  ] as const) {
    const { body } = await platform.rpc(id, method, params)
    assert.equal(body.error?.data?.[0]?.reason, 'REPLY_DAMAGED', JSON.stringify(body))
    assert.match(body.error.message, /was changed on the disk, so it is not shown/)
  }
  assert.equal(replyText((await platform.rpc(id, 'GetTask', { id: other })).body.result), 'paid: transfer 7 USD')
  const lists = [
    await platform.rpc(id, 'ListTasks', { includeArtifacts: true }),
    await platform.request('GET', `/workspaces/${id}/conversations/monday`),
    await platform.request('GET', `/workspaces/${id}/conversations?search=transfer`),
    await platform.request('GET', `/workspaces/${id}/activity`),
  ]
  for (const list of lists) {
    const text = JSON.stringify(list.body)
    assert.equal(list.status, 200, text)
    assert.ok(!text.includes('900 EUR'), text)
  }
  for (const list of [lists[0], lists[1], lists[3]]) {
    const text = JSON.stringify(list?.body)
    assert.ok(text.includes('paid: transfer 7 USD') && text.includes('was changed on the disk'), text)
  }
}
