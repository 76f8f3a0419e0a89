/** A database on a slow disk: every commit takes longer than a caller should wait, and its owner learns why. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startDatabaseProxy } from '../crash/database-proxy.ts'
import { runCommand } from '../harness/command.ts'
import { replyText, startPlatformFor } from '../harness/platform.ts'
import { startPostgres } from '../harness/stores/postgres.ts'

test('RE-7 commits over 100 ms are logged, counted in /metrics and shown by doctor', async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  const proxy = await startDatabaseProxy(await postgres.url())
  t.after(() => proxy.close())
  const platform = await startPlatformFor(t, { database: proxy.url })
  const created = { name: 'echo', runtime: 'mock', runtime_config: { reply: '%s' } }
  const { body } = await platform.request('POST', '/workspaces', created)
  proxy.delayCommits(150)
  for (const text of ['one', 'two']) assert.equal(replyText(await platform.send(body.id, text)), text)

  const metrics = await fetch(`${platform.url}/metrics`, { headers: { Authorization: `Bearer ${platform.token}` } })
  const [, count] = /^molecule_store_slow_commits_total (\d+)$/m.exec(await metrics.text()) ?? []
  assert.ok(Number(count) >= 2, `counted ${count}`)
  const lines = readFileSync(join(platform.dataDir, 'molecule.log'), 'utf8').split('\n')
  assert.equal(lines.filter((line) => line.includes('the disk of the store is slow')).length, 1)
  const { out } = await runCommand(['doctor', '-o', 'json'], { env: { MOLECULE_HOME: platform.dataDir } })
  const findings = JSON.parse(out) as { area: string; name: string; verdict: string; text: string }[]
  const slow = findings.find(({ area, name }) => area === 'disk' && name === 'store')
  assert.equal(slow?.verdict, 'note')
  assert.match(slow?.text ?? '', /^slow: a commit took \d{3,} ms/)
})
