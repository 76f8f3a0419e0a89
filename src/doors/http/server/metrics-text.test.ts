import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { COUNTERS, type CounterName, createMetrics } from '../../../metrics.ts'
import { metricsText } from './metrics-text.ts'

const QUIET = { waiting: 0, running: 0, workspaces: [] }

test('PL-10 metrics have the format of Prometheus: load by workspace, turns, failures, requests, memory', async (t) => {
  const metrics = createMetrics()
  metrics.count('molecule_turns_total', { outcome: 'done' }, 3)
  const { store, clock, insert } = openTestStore(t)
  await insert('workspace_load', { workspace_id: 'ws_1', hosted: 1, slots: 1, waiting: 5, running: 1 })
  await insert('workspace_load', { workspace_id: 'ws_2', hosted: 1, slots: 1, waiting: 2, running: 1 })
  await insert('conversations', { workspace_id: 'ws_1', ready_at: clock.nowMs() - 1500 })
  const { sendRequest } = await openDoor(t, { metrics, store })
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
    'molecule_messages_waiting 7',
    'molecule_turns_running 2',
    'molecule_queue_depth{workspace="ws_1"} 5',
    'molecule_queue_oldest_seconds{workspace="ws_1"} 1.5',
  ]) {
    assert.ok(lines.includes(line), line)
  }
  for (const name of ['molecule_resident_memory_bytes', 'molecule_uptime_seconds'])
    assert.match(text, new RegExp(`^${name} \\d+$`, 'm'))
  assert.deepEqual(problemsOfFormat(text), [])
})

test('PL-10 a platform without load and without a count shows zeros, and no line without a value', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { text } = await sendRequest('/metrics', { token: secretOf('viewer') })
  const lines = text.split('\n')
  for (const line of ['molecule_messages_waiting 0', 'molecule_turns_running 0']) assert.ok(lines.includes(line), line)
  assert.deepEqual(problemsOfFormat(text), [])
})

test('PL-32 every metric has its help and its type, and the name that its type asks for', () => {
  const metrics = createMetrics()
  for (const name of Object.keys(COUNTERS) as CounterName[]) {
    metrics.count(name, { code: 'a "quoted" \\ one\nof two lines' })
    metrics.count(name, { code: 'b' }, 2)
  }
  const workspaces = ['ws_1', 'ws_2'].map((id) => ({ id, waiting: 5, running: 1, oldest_waiting_ms: 1500 }))
  const text = metricsText(metrics, { waiting: 10, running: 2, workspaces })
  assert.deepEqual(problemsOfFormat(text), [])
  assert.equal(text.match(/^# HELP molecule_\w+ [A-Z].*\.$/gm)?.length, Object.keys(COUNTERS).length + 7)
  // The text of an earlier version, and other mistakes: the rules above find each of them.
  const earlier = '# TYPE molecule_queue_depth_total gauge\nmolecule_queue_depth_total 0\n'
  const wrong = [earlier, '# HELP a A.\n# TYPE a counter\na 1\n', '# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n']
  wrong.push('# HELP a A.\n# TYPE a gauge\na 1\na 2\n', 'a 1\n', '# HELP a A.\n# TYPE a gauge\na{b="c} 1\n')
  for (const each of wrong) assert.notDeepEqual(problemsOfFormat(each), [], each)
})

const SAMPLE =
  /^([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (?:\d+(?:\.\d+)?)$/
/** Units that have a base unit: seconds and bytes. */
const OTHER_UNIT = /_(?:ms|milliseconds|minutes|hours|kb|kib|mb|mib|kilobytes|megabytes)(?:_total)?$/

/** The rules of `promtool check metrics` for counters and gauges: a machine that runs the tests may not have promtool. */
function problemsOfFormat(text: string): string[] {
  const problems = text.endsWith('\n') ? [] : ['the last line does not end']
  const helped = new Set<string>()
  const types = new Map<string, string>()
  const samples = new Set<string>()
  let current = ''
  for (const line of text.split('\n').slice(0, -1)) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') {
      if (helped.has(name)) problems.push(`two HELP of ${name}`)
      helped.add(name)
    } else if (kind === 'TYPE') {
      if (!helped.has(name) || types.has(name)) problems.push(`${name} has no HELP, or two TYPE`)
      if ((rest === 'counter') !== name.endsWith('_total')) problems.push(`${name} is a ${rest}`)
      if (OTHER_UNIT.test(name) || /_(?:counter|gauge|count|sum|bucket)$/.test(name)) problems.push(`the name ${name}`)
      types.set(name, rest)
      current = name
    } else {
      const [, sampled = '', labels = ''] = SAMPLE.exec(line) ?? []
      if (sampled === '' || sampled !== current) problems.push(`not a sample of ${current}: ${line}`)
      if (samples.has(`${sampled}${labels}`)) problems.push(`twice: ${line}`)
      samples.add(`${sampled}${labels}`)
    }
  }
  return problems
}

test('PL-10 a label cannot break out of its line', () => {
  const metrics = createMetrics()
  metrics.count('molecule_turn_failures_total', { code: 'a"} 1\nevil{x="\\' })
  assert.match(metricsText(metrics, QUIET), /^molecule_turn_failures_total\{code="a\\"\} 1\\nevil\{x=\\"\\\\"\} 1$/m)
})
