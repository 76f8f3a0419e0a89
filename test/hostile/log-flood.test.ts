/** A stranger writes to the log with every request, until the traces of something else have been rotated away. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const FLOOD = 300

/** Sends a request without a token, perhaps with a wrong host; its status. */
function sendAsStranger(url: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url + path, { headers }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(answer.statusCode ?? 0))
    })
    outgoing.once('error', reject)
    outgoing.end()
  })
}

test('RE-9 RE-7 thousands of refused requests of a stranger are a few short lines of the log', async (t) => {
  const platform = await startPlatformFor(t)
  const long = 'x'.repeat(8000)
  const statuses = new Set<number>()
  for (let n = 0; n < FLOOD; n++) {
    statuses.add(await sendAsStranger(platform.url, `/workspaces?${long}`))
    statuses.add(await sendAsStranger(platform.url, `/none/${long}`))
    statuses.add(await sendAsStranger(platform.url, '/workspaces', { authorization: `Bearer ${n}` }))
    statuses.add(await sendAsStranger(platform.url, '/health', { host: `${long}.example` }))
    statuses.add(await sendAsStranger(platform.url, `/workspaces/${n}/a2a`))
  }
  assert.ok(
    [401, 403, 429].every((status) => statuses.has(status)),
    [...statuses].join(),
  )
  const log = readFileSync(join(platform.dataDir, 'molecule.log'), 'utf8')
  const lines = log.split('\n').filter((line) => line.includes('request refused'))
  assert.ok(lines.length > 0 && lines.length <= 80, `${lines.length} lines`)
  assert.ok(lines.every((line) => line.length < 1200))
  assert.match(log, /the platform is up/)
})

test('RE-7 IN-6 old rows are deleted soon after a start, on a machine that never runs for an hour', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const id = await first.exec('cat')
  await first.send(id, 'hello')
  await first.stop()
  const store = new DatabaseSync(join(dataDir, 'molecule.db'))
  store.exec('update events set at_ms = 1; update messages set settled_at = 1')
  store.close()
  const second = await startPlatformFor(t, { dataDir })
  const entries = async () => (await second.request('GET', `/workspaces/${id}/activity`)).body.activity.length
  assert.ok((await entries()) > 0)
  await waitUntil(async () => (await entries()) === 0, 'the old entries are deleted')
})
