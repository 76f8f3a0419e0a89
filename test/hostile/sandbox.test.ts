/** A workspace asks for a sandbox that does not exist: it must never run without one in silence. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { getWorkspace, reasonText, replyText, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const REASON = /tier 1 means a sandbox, and this version has none/

test('RE-9 PL-18 tier 1 is refused with the reason: at creation, in a change, in a template, in the file', async (t) => {
  const platform = await startPlatformFor(t)
  const runtime = { runtime: 'exec', runtime_config: { cmd: 'cat' } }
  const created = await platform.request('POST', '/workspaces', { name: 'a', tier: 1, ...runtime })
  assert.equal(created.status, 400)
  assert.match(created.body.error.message, REASON)
  const id = await platform.exec('cat', { tier: 2 })
  const changed = await platform.request('PATCH', `/workspaces/${id}`, { tier: 1 })
  assert.equal(changed.status, 400)
  assert.match(changed.body.error.message, REASON)

  const template = join(platform.dataDir, 'templates', 'boxed')
  mkdirSync(template, { recursive: true })
  writeFileSync(join(template, 'config.yaml'), 'tier: 1\n')
  const copied = await platform.request('POST', '/workspaces', { name: 'b', template: 'boxed', ...runtime })
  assert.equal(copied.status, 400)
  assert.match(copied.body.error.message, REASON)

  const file = join(platform.dataDir, 'workspaces', id.replace('ws_', 'ws-'), 'config.yaml')
  writeFileSync(file, `${readFileSync(file, 'utf8')}tier: 1\n`)
  assert.match(reasonText(await platform.send(id, 'hello')), REASON)
})

test('RE-9 PL-18 a workspace stored with tier 1 by an earlier version runs nothing until its tier is 2', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const witness = join(dataDir, 'ran')
  const id = await first.exec(`touch '${witness}'; echo ran`)
  await first.stop()
  const store = new DatabaseSync(join(dataDir, 'molecule.db'))
  store.prepare(`update workspaces set settings = json_set(settings, '$.tier', 1) where id = ?`).run(id)
  store.close()

  const platform = await startPlatformFor(t, { dataDir })
  assert.match(reasonText(await platform.send(id, 'hello')), REASON)
  const { status, status_reason: why } = await getWorkspace(platform, id)
  assert.equal(status, 'failed')
  assert.match(why, REASON)
  assert.ok(!existsSync(witness))
  assert.equal((await platform.request('PATCH', `/workspaces/${id}`, { tier: 2 })).status, 200)
  assert.equal(replyText(await platform.send(id, 'again')), 'ran\n')
})
