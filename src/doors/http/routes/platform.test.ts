import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { createMetrics } from '../../../metrics.ts'
import { metricsText } from '../server/metrics-text.ts'
import type { FoundAgents } from './route.ts'

test('PL-15 the platform says its version, the Node that runs it, and the versions of A2A that it speaks', async (t) => {
  const call = await openRoutes(t, {})
  const { json } = await call('GET /version', { role: 'viewer' })
  assert.deepEqual(json, { name: 'molecule', version: '1.2.3', node: process.version, a2a: ['1.0', '0.3'] })
  const document = await call('GET /openapi.json', { role: 'viewer' })
  assert.equal(document.headers['content-type'], 'application/json')
  assert.equal(document.json.info.version, '1.2.3')
})

test('PL-1 /ready says in one word whether the platform accepts work, and else why not', async (t) => {
  let reason: string | undefined
  const { sendRequest } = await openDoor(t, { unready: async () => reason })
  assert.deepEqual((await sendRequest('/ready')).json, { status: 'ready' })
  reason = 'starting'
  const { status, json } = await sendRequest('/ready')
  assert.deepEqual([status, json], [503, { status: 'not_ready', reason: 'starting' }])
})

test('PL-10 a metric with several labels names all of them, and the memory of the process is shown', () => {
  const metrics = createMetrics()
  metrics.count('molecule_turns_total', { a: '1', b: '2' })
  const text = metricsText(metrics, { waiting: 0, running: 0, workspaces: [] })
  assert.match(text, /^# TYPE molecule_turns_total counter\nmolecule_turns_total\{a="1",b="2"\} 1\n# HELP molecule_/m)
  assert.match(text, /^molecule_heap_used_bytes \d+$/m)
})

test('CV-1 the page and its icon tell browsers what to keep, and that no other site may use them', async (t) => {
  const { sendRequest } = await openDoor(t)
  const page = await sendRequest('/')
  const isolation = ['cross-origin-opener-policy', 'cross-origin-resource-policy', 'vary', 'referrer-policy']
  const sent = isolation.map((name) => page.headers[name])
  assert.deepEqual(sent, ['same-origin', 'same-origin', 'Accept-Encoding', 'no-referrer'])
  assert.equal(page.headers['content-encoding'], undefined)
  const icon = await sendRequest('/icon.svg')
  assert.deepEqual([icon.headers['cache-control'], icon.headers['content-type']], ['no-cache', 'image/svg+xml'])
  const missing = await sendRequest('/assets/nothing.js')
  assert.deepEqual([missing.status, missing.json.error.message], [404, 'the page has no file "nothing.js"'])
})

test('CL-4 a login link is for an admin called browser unless it says otherwise, and works for ten minutes', async (t) => {
  const { tokens } = createFakePlatform()
  const issued: unknown[] = []
  const recording = {
    ...tokens,
    issueLoginCode(person: unknown) {
      issued.push(person)
      return 'code'
    },
  }
  const call = await openRoutes(t, { tokens: recording })
  const link = (body?: object) => call('POST /login-links', { headers: { host: 'localhost:1' }, body })
  const { status, json, headers } = await link()
  assert.deepEqual([status, json], [201, { url: 'http://localhost:1/#code', expires_in: 600 }])
  assert.equal(headers['cache-control'], 'no-store')
  await link({ role: 'viewer', name: 'Ana' })
  assert.deepEqual(issued, [
    { role: 'admin', name: 'browser' },
    { role: 'viewer', name: 'Ana' },
  ])
  for (const role of ['caller', 'workspace']) assert.equal((await link({ role })).status, 400)
})

test('PL-1 the code of a login has at most 256 characters', async (t) => {
  const { sendRequest } = await openDoor(t)
  const login = (code: string) => sendRequest('/login', { method: 'POST', body: JSON.stringify({ code }) })
  assert.deepEqual([(await login('x'.repeat(256))).status, (await login('x'.repeat(257))).status], [401, 400])
  assert.equal((await sendRequest('/logout', { method: 'POST', token: secretOf('admin') })).status, 204)
})

test('CV-3 the agents of the machine are listed with what is known of each', async (t) => {
  const bare = { backend: 'codex', program: 'codex', isLoggedIn: false, isKeptWarm: false }
  const state = { version: '2.1', problem: 'too old', isLoggedIn: true, remedy: 'update it', isKeptWarm: true }
  const full = { backend: 'claude-code', program: 'claude', path: '/bin/claude', ...state }
  const call = await openRoutes(t, { agents: recordPart<FoundAgents>({ list: [bare, full] }).part })
  const { json } = await call('GET /agents', { role: 'member' })
  const { isLoggedIn: _in, isKeptWarm: _warm, ...shown } = full
  assert.deepEqual(json.agents, [
    { backend: 'codex', program: 'codex', installed: false, logged_in: false, warm: false },
    { ...shown, installed: true, logged_in: true, warm: true },
  ])
})
