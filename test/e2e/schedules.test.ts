/** Schedules through a running platform: times, never two at once, pause, run now, missed times, and where answers go. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const YEARLY = { cron: '0 0 1 1 *', text: 'report' }

async function createMock(platform: PlatformUnderTest, runtimeConfig: object = { reply: 'done: %s' }): Promise<string> {
  const body = { name: 'clerk', runtime: 'mock', runtime_config: runtimeConfig }
  return (await platform.request('POST', '/workspaces', body)).body.id
}

async function addSchedule(platform: PlatformUnderTest, workspaceId: string, body: object) {
  const answer = await platform.request('POST', `/workspaces/${workspaceId}/schedules`, body)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const listOne = async (platform: PlatformUnderTest) => (await platform.request('GET', '/schedules')).body.schedules[0]
const listTasks = async (platform: PlatformUnderTest, workspaceId: string) =>
  (await platform.rpc(workspaceId, 'ListTasks', {})).body.result.tasks

/** Moves the next time of every schedule, while no platform runs. */
function setNextTime(dataDir: string, ms: number, missed?: 'skip'): void {
  const database = new DatabaseSync(join(dataDir, 'molecule.db'))
  database.prepare('update schedules set next_at = ?, missed = coalesce(?, missed)').run(ms, missed ?? null)
  database.close()
}

test('SC-1 a schedule runs when its time has come, once, also over a restart, and the list has the last result', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const id = await createMock(first)
  const schedule = await addSchedule(first, id, { ...YEARLY, time_zone: 'Europe/Berlin' })
  assert.match(schedule.next_at, /-12-31T23:00:00\.000Z$/, 'the time zone counts')
  assert.deepEqual([schedule.missed, schedule.paused, schedule.last, schedule.name], ['skip', false, null, 'report'])
  await first.stop('SIGKILL')
  setNextTime(dataDir, Date.now() - 1000)
  const second = await startPlatformFor(t, { dataDir })
  await waitUntil(async () => (await listOne(second)).last?.state === 'TASK_STATE_COMPLETED', 'the run is complete')
  const { last, next_at } = await listOne(second)
  assert.equal(last.text, 'done: report')
  assert.match(next_at, /-12-31T23:00:00\.000Z$/)
  await second.stop('SIGKILL')
  // As after a crash between the admission and the advance.
  setNextTime(dataDir, Date.parse(last.at))
  const third = await startPlatformFor(t, { dataDir })
  await waitUntil(async () => (await listOne(third)).next_at === next_at, 'the schedule advances again')
  assert.equal((await listTasks(third, id)).length, 1, 'the same time is one task')
})

test('SC-1 a time that was missed is left out, or with missed=once made up for once', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const id = await createMock(first)
  await addSchedule(first, id, { ...YEARLY, name: 'skips' })
  await addSchedule(first, id, { ...YEARLY, name: 'catches up', missed: 'once' })
  await first.stop('SIGKILL')
  const missedMs = Date.now() - 10 * 24 * 3600_000
  setNextTime(dataDir, missedMs)
  const second = await startPlatformFor(t, { dataDir })
  const list = async () => (await second.request('GET', `/schedules?workspace=${id}`)).body.schedules
  await waitUntil(
    async () => (await list())[1]?.last?.state === 'TASK_STATE_COMPLETED',
    'the missed time is made up for',
  )
  const [skips, catchesUp] = await list()
  assert.deepEqual([skips.last, catchesUp.note], [null, null])
  assert.match(skips.note, /was left out: the platform did not run then/)
  assert.equal((await listTasks(second, id)).length, 1)
  await second.stop('SIGKILL')
  // As an earlier version left it: the message of that time is in the store, and the schedule had not advanced.
  setNextTime(dataDir, missedMs, 'skip')
  const third = await startPlatformFor(t, { dataDir })
  const again = async () => (await third.request('GET', `/schedules?workspace=${id}`)).body.schedules
  await waitUntil(async () => (await again())[1].next_at === catchesUp.next_at, 'the schedule advances')
  assert.equal((await again())[1].note, null, 'a time whose message was sent is not left out')
  assert.equal((await listTasks(third, id)).length, 1)
})

test('SC-1 run now sends the message; while that run works, another one is refused and a due time is left out', async (t) => {
  const dataDir = temporaryDir(t)
  const platform = await startPlatformFor(t, { dataDir })
  const id = await createMock(platform, { delay: '1h' })
  const { id: schedule } = await addSchedule(platform, id, YEARLY)
  const run = () => platform.request('POST', `/schedules/${schedule}/run`)
  assert.equal((await run()).status, 202)
  const refused = await run()
  assert.equal(refused.status, 400)
  assert.match(refused.body.error.message, /the last run of sch_\w+ has not ended yet/)
  await platform.stop('SIGKILL')
  setNextTime(dataDir, Date.now() - 1000)
  const again = await startPlatformFor(t, { dataDir })
  await waitUntil(async () => (await listOne(again)).note !== null, 'the due time is left out')
  assert.match((await listOne(again)).note, /was left out: the run before had not ended/)
})

test('SC-1 answers go to a signed webhook; a paused schedule does not run; the schedule of a deleted workspace ends', async (t) => {
  const received: { body: string; signature: unknown }[] = []
  const hook = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      received.push({ body, signature: request.headers['x-molecule-signature'] })
      response.end()
    })
  }).listen(0, '127.0.0.1')
  t.after(() => hook.close())
  await once(hook, 'listening')
  const { port } = hook.address() as AddressInfo
  const dataDir = temporaryDir(t)
  const args = ['--allow-outbound', '127.0.0.1']
  const platform = await startPlatformFor(t, { dataDir, args })
  const id = await createMock(platform)
  const schedule = await addSchedule(platform, id, { ...YEARLY, webhook: `http://127.0.0.1:${port}/hook` })
  assert.match(schedule.webhook_secret, /^mol_webhook_/)
  await platform.request('POST', `/schedules/${schedule.id}/run`)
  await waitUntil(() => received.some(({ body }) => body.includes('done: report')), 'the webhook has the answer')
  assert.ok(received.every(({ signature }) => /^t=\d+,v1=[0-9a-f]{64}$/.test(String(signature))))
  assert.ok(!JSON.stringify(await listOne(platform)).includes(schedule.webhook_secret))
  const paused = await platform.request('PATCH', `/schedules/${schedule.id}`, { paused: true })
  assert.deepEqual([paused.status, paused.body.paused, paused.body.next_at], [200, true, null])
  await platform.stop('SIGKILL')
  setNextTime(dataDir, Date.now() - 1000)
  const again = await startPlatformFor(t, { dataDir, args })
  const other = await createMock(again)
  const { id: ends } = await addSchedule(again, other, YEARLY)
  await again.request('DELETE', `/workspaces/${other}?confirm=clerk`)
  assert.equal((await again.request('POST', `/schedules/${ends}/run`)).status, 404)
  assert.equal((await listTasks(again, id)).length, 1, 'the paused schedule sent nothing')
})

test('SC-1 molecule schedule adds, lists, pauses, runs and removes; wrong times are refused with the reason', async (t) => {
  const platform = await startPlatformFor(t)
  await createMock(platform)
  const schedule = (...args: string[]) =>
    runCommand(['schedule', ...args], { env: { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url } })
  const added = await schedule('add', 'clerk', '30 9 * * 1-5', 'write', 'the report', '--time-zone', 'Europe/Berlin')
  const [, id = ''] = /^added (sch_\w+) "write the report", next \d{4}/.exec(added.out) ?? []
  assert.ok(id !== '', added.out + added.err)
  assert.match((await schedule('list')).out, /clerk .*write the report .*30 9 \* \* 1-5 Europe\/Berlin.*has not run/)
  assert.match((await schedule('run', id)).out, /^sent sch_\w+: task \w+/)
  assert.equal((await schedule('pause', id)).out, `paused ${id}\n`)
  assert.match((await schedule()).out, /paused/)
  assert.equal((await schedule('remove', id)).out, `removed ${id}\n`)
  for (const [cron, zone, reason] of [
    ['99 * * * *', 'UTC', /the times "99 \* \* \* \*" cannot be used: "99" is not a minute;/],
    ['* * * * * *', 'UTC', /cannot be used/],
    [
      '0 9 * * *',
      'Mars/Base',
      /^error: there is no time zone "Mars\/Base"; use a name such as UTC or Europe\/Berlin\n$/,
    ],
    ['0 0 30 2 *', 'UTC', /^error: the times "0 0 30 2 \*" never come: no date fits the pattern\n$/],
  ] as const) {
    const refused = await schedule('add', 'clerk', cron, 'x', '--time-zone', zone)
    assert.equal(refused.code, 2)
    assert.match(refused.err, reason)
  }
})
