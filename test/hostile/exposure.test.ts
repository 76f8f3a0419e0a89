/** What other users, other machines and agents can read of a platform without asking it: arguments, network, environment. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import test from 'node:test'
import { linuxOnly } from '../harness/live-processes.ts'
import { replyText, startPlatformFor } from '../harness/platform.ts'
import { startPlatformProcess } from '../harness/platform-process.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

test('RE-9 PL-12 the password of --database is not in the list of processes', linuxOnly, async (t) => {
  // A database that accepts connections and never answers: the platform stays in its start.
  const database = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(database, 'listening')
  t.after(() => database.close())
  let connected = false
  database.once('connection', (socket) => {
    connected = true
    t.after(() => socket.destroy())
  })
  const { port } = database.address() as AddressInfo
  const url = `postgres://ana:hunter2hunter2@127.0.0.1:${port}/molecule`
  const platform = startPlatformProcess({ dataDir: temporaryDir(t), database: url })
  t.after(() => platform.stop('SIGKILL'))
  await waitUntil(() => connected, 'the platform connects to its database')
  const listed = readFileSync(`/proc/${platform.pid}/cmdline`, 'utf8')
  assert.doesNotMatch(listed, /hunter2/)
  assert.match(listed, /^molecule up .*--database postgres:\/\/ana:\*\*\*@127\.0\.0\.1/)
})

test('RE-9 RT-12 variables of the PostgreSQL client do not reach the command of a workspace', async (t) => {
  const env = { PGPASSWORD: 'hunter2hunter2', PGHOST: 'db.internal', PGSERVICEFILE: '/secret' }
  const platform = await startPlatformFor(t, { env })
  const printed = replyText(await platform.send(await platform.exec('env'), ''))
  assert.match(printed ?? '', /^PATH=/m)
  assert.doesNotMatch(printed ?? '', /^PG/m)
})

test('RE-9 PL-14 a host beyond loopback causes a warning before the platform listens', async (t) => {
  // An address for documentation, which no machine has: the platform warns and then cannot listen.
  const exposed = startPlatformProcess({ dataDir: temporaryDir(t), args: ['--host', '192.0.2.1'] })
  t.after(() => exposed.stop('SIGKILL'))
  await assert.rejects(exposed.ready, /cannot listen/)
  assert.match(exposed.output(), /other machines can reach this platform \(--host 192\.0\.2\.1\).*https/)
  const closed = await startPlatformFor(t)
  assert.doesNotMatch(closed.output(), /other machines/)
})

test('RE-9 PL-2 names with line breaks, NUL or bidirectional controls are refused', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat', { name: 'Zoë 👩‍🚀 عربي' })
  for (const bad of [
    'a\nadmin',
    'a\r\nb',
    'nul\0',
    'esc\u001b[2J',
    'gpj.\u202eexe',
    '\u2066a\u2069',
    'a\u2028b',
    '\u200fx',
  ]) {
    const calls: readonly [string, string, object][] = [
      ['POST', '/workspaces', { name: bad, runtime: 'mock' }],
      ['POST', '/workspaces', { name: 'x', runtime: 'mock', model: bad }],
      ['PATCH', `/workspaces/${id}`, { name: bad }],
      ['POST', '/tokens', { name: bad, role: 'viewer' }],
    ]
    for (const [method, path, body] of calls) {
      const answer = await platform.request(method, path, body)
      assert.equal(answer.status, 400, `${method} ${path} ${JSON.stringify(body)}: ${JSON.stringify(answer.body)}`)
      assert.match(answer.body.error.message, /must be one line/)
    }
  }
})
