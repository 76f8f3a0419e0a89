import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { createMetrics } from '../../../metrics.ts'
import { metricsText } from './metrics.ts'

const QUIET = { waiting: 0, running: 0, workspaces: [] }

test('PL-10 metrics have the format of Prometheus: load by workspace, turns, failures, requests, memory', async (t) => {
  const metrics = createMetrics()
  metrics.count('molecule_turns_total', { outcome: 'done' }, 3)
  const workspaces = [{ id: 'ws_1', waiting: 5, running: 1, oldestWaitingMs: 1500 }]
  const load = async () => ({ waiting: 7, running: 2, workspaces })
  const { sendRequest } = await openDoor(t, { metrics, load })
  await sendRequest('/workspaces')
  await waitUntil(() => metrics.read().has('molecule_http_requests_total'), 'the refusal is counted')
  const { status, text, headers } = await sendRequest('/metrics', { token: secretOf('viewer') })
  assert.equal(status, 200)
  assert.match(String(headers['content-type']), /^text\/plain; version=0.0.4/)
  const lines = text.split('\n')
  for (const line of [
    '# TYPE molecule_turns_total counter',
    'molecule_turns_total{outcome="done"} 3',
    'molecule_http_requests_total{status="4xx"} 1',
    'molecule_queue_depth_total 7',
    'molecule_turns_running 2',
    'molecule_queue_depth{workspace="ws_1"} 5',
    'molecule_queue_oldest_seconds{workspace="ws_1"} 1.5',
  ]) {
    assert.ok(lines.includes(line), line)
  }
  for (const name of ['molecule_resident_memory_bytes', 'molecule_uptime_seconds'])
    assert.match(text, new RegExp(`^${name} \\d+$`, 'm'))
  for (const line of lines)
    assert.match(line, /^(?:|# TYPE \w+ (?:counter|gauge)|\w+(?:\{\w+="[^"\n]*"\})? [\d.e+-]+)$/)
})

test('PL-10 a platform without load and without a count shows zeros, and no line without a value', async (t) => {
  const { sendRequest } = await openDoor(t)
  const lines = (await sendRequest('/metrics', { token: secretOf('viewer') })).text.split('\n')
  for (const line of ['molecule_queue_depth_total 0', 'molecule_turns_running 0']) assert.ok(lines.includes(line), line)
  for (const line of lines)
    assert.match(line, /^(?:|# TYPE \w+ (?:counter|gauge)|\w+(?:\{\w+="[^"\n]*"\})? [\d.e+-]+)$/)
})

test('PL-10 a label cannot break out of its line', () => {
  const metrics = createMetrics()
  metrics.count('failures', { code: 'a"} 1\nevil{x="\\' })
  assert.match(metricsText(metrics, QUIET), /^failures\{code="a\\"\} 1\\nevil\{x=\\"\\\\"\} 1$/m)
})
