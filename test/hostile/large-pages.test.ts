/** Attacks with large stored texts on a real platform: a reader must not stop it for other callers or fill its memory. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type PlatformUnderTest, startPlatformFor, waitForFinalTask } from '../harness/platform.ts'

const PAGE_BYTES = 1024 * 1024
const TASKS = 12
const LARGE_BYTES = 6 * 1024 * 1024

const residentBytes = ({ pid }: PlatformUnderTest): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** The longest time that `/health` took while `work` ran. */
async function longestHealthMs(platform: PlatformUnderTest, work: Promise<unknown>): Promise<number> {
  let longest = 0
  let running = true
  const done = work.finally(() => {
    running = false
  })
  while (running) {
    const start = performance.now()
    await (await fetch(`${platform.url}/health`)).arrayBuffer()
    longest = Math.max(longest, performance.now() - start)
  }
  await done
  return longest
}

test('PL-23 lists, replays and downloads of tasks with large artifacts are cut by bytes and go on by cursor', {
  timeout: 240_000,
}, async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec(`head -c ${LARGE_BYTES} /dev/zero | tr '\\0' x`)
  const made: string[] = []
  for (let count = 0; count < TASKS; count++) made.push((await platform.send(id, `make ${count}`)).id)
  const before = residentBytes(platform)

  const seen: string[] = []
  const readAll = async () => {
    for (let pageToken = ''; ; ) {
      const params = { pageSize: 100, includeArtifacts: true, ...(pageToken !== '' && { pageToken }) }
      const { body } = await platform.rpc(id, 'ListTasks', params)
      const { tasks, nextPageToken } = body.result
      assert.ok(tasks.length === 1 || Buffer.byteLength(JSON.stringify(tasks)) <= PAGE_BYTES)
      seen.push(...tasks.map((task: { id: string }) => task.id))
      pageToken = nextPageToken
      if (pageToken === '') return
    }
  }
  const heldMs = await longestHealthMs(platform, readAll())
  assert.deepEqual(seen, made.toReversed())
  const lean = (await platform.rpc(id, 'ListTasks', { pageSize: 100, historyLength: 0 })).body.result
  assert.deepEqual([lean.tasks.length, lean.nextPageToken], [TASKS, ''])

  const artifactId = (await platform.request('GET', `/tasks/${made[0]}`)).body.artifacts[0].artifactId
  const download = await fetch(`${platform.url}/tasks/${made[0]}/artifacts/${encodeURIComponent(artifactId)}`, {
    headers: { authorization: `Bearer ${platform.token}` },
  })
  assert.equal(download.status, 200)
  assert.equal((await download.arrayBuffer()).byteLength, LARGE_BYTES)

  const entries: { type: string }[] = []
  for (let since = 0; ; ) {
    const { body } = await platform.request('GET', `/workspaces/${id}/activity?since=${since}&limit=500`)
    if (body.next === since) break
    since = body.next
    entries.push(...body.activity)
  }
  assert.equal(entries.filter(({ type }) => type === 'reply').length, TASKS)
  const grown = residentBytes(platform) - before
  assert.ok(grown < TASKS * LARGE_BYTES * 4, `the platform grew by ${Math.round(grown / 1e6)} MB`)
  t.diagnostic(`another caller waited ${heldMs.toFixed(0)} ms at most; memory grew by ${Math.round(grown / 1e6)} MB`)
})

test('PL-23 RE-9 lists of schedules read no large answers, however many are asked for at once', {
  timeout: 110_000,
}, async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec(`head -c ${LARGE_BYTES} /dev/zero | tr '\\0' x`)
  const { body: viewer } = await platform.request('POST', '/tokens', { name: 'v', role: 'viewer' })
  const taskIds: string[] = []
  for (let count = 0; count < TASKS; count++) {
    const schedule = { cron: '0 0 1 1 *', text: `make ${count}` }
    const { body } = await platform.request('POST', `/workspaces/${id}/schedules`, schedule)
    taskIds.push((await platform.request('POST', `/schedules/${body.id}/run`)).body.task_id)
    await waitForFinalTask(platform, id, taskIds.at(-1) ?? '')
  }
  const before = residentBytes(platform)
  const list = async () => {
    const response = await fetch(`${platform.url}/schedules`, { headers: { authorization: `Bearer ${viewer.token}` } })
    return ((await response.json()) as { schedules: { last: { task_id: string; state: string } }[] }).schedules
  }
  const lists = await Promise.all(Array.from({ length: 8 }, list))
  const grown = residentBytes(platform) - before
  for (const schedules of lists)
    assert.deepEqual(
      schedules.map(({ last }) => [last.task_id, last.state]),
      taskIds.map((taskId) => [taskId, 'TASK_STATE_COMPLETED']),
    )
  assert.ok(grown < TASKS * LARGE_BYTES, `the platform grew by ${Math.round(grown / 1e6)} MB`)
  t.diagnostic(`memory grew by ${Math.round(grown / 1e6)} MB`)
})
