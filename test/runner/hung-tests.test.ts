/** The test runner itself, with planted files that hang. Each must end, fail, and name what hung. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pidsWithCommandLine, uniqueSeconds } from '../harness/live-processes.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil, within } from '../harness/wait.ts'

const RUN_TESTS = fileURLToPath(new URL('../../scripts/run-tests.mjs', import.meta.url))
const LIMITS = { testMs: 2_500, quietMs: 30_000, fileMs: 60_000, leakMs: 1_000, killMs: 3_000 }
const HEAD = `import { after, before, describe, test } from 'node:test'
const hang = () => new Promise(() => setInterval(() => undefined, 1000))
`

/** Runs the planted file as `npm test` does, with short limits; what it printed. */
async function runPlanted(t: TestContext, body: string, limits: object = {}): Promise<{ code: number; out: string }> {
  const dir = temporaryDir(t)
  const file = join(dir, 'planted.test.mjs')
  writeFileSync(file, HEAD + body)
  const script = join(dir, 'run.mjs')
  const options = { title: 'planted', files: [{ file }], lanes: 1, limits: { ...LIMITS, ...limits } }
  writeFileSync(
    script,
    `import { runTests } from ${JSON.stringify(RUN_TESTS)}
const passed = await runTests(${JSON.stringify(options)})
process.stdout.write('', () => process.exit(passed ? 0 : 1))`,
  )
  // A run inside a test process would do nothing: Node sees this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const parts = await within(Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]), 'the run ends')
  return { code: child.exitCode ?? -1, out: parts[0] + parts[1] }
}

const hanging = [
  { what: 'a test', body: `test('waits for ever', hang)`, named: /✖ waits for ever.*timed out after 2500ms/s },
  {
    what: 'a test in a suite',
    body: `describe('suite', () => { test('waits inside', hang) })`,
    named: /✖ waits inside.*timed out after 2500ms/s,
  },
  {
    what: 'a hook before a suite',
    body: `describe('suite of the hook', () => { before(hang); test('behind it', () => undefined) })`,
    named: /✖ suite of the hook.*timed out after 2500ms/s,
  },
  {
    what: 'a hook after a suite',
    body: `describe('suite of the hook', () => { after(hang); test('before it', () => undefined) })`,
    named: /✖ suite of the hook.*timed out after 2500ms/s,
  },
  {
    what: 'a busy loop in a suite',
    body: `describe('suite', () => { test('turns round and round', () => { for (;;); }) })`,
    named: /planted\.test\.mjs: "suite > turns round and round" held the event loop for 2.5 s/,
  },
  {
    what: 'a module that never loads',
    body: `await hang(); test('never reached', () => undefined)`,
    named: /planted\.test\.mjs: no test was defined within 2.5 s/,
  },
  {
    what: 'a timer that a passing test left',
    body: `test('leaves a timer', () => void setInterval(() => undefined, 1000))`,
    named: /open: [^\n]*Timeout.*planted\.test\.mjs: all tests have ended, but a test left something open/s,
  },
  {
    what: 'a test whose own limit is too long',
    body: `test('waits very long', { timeout: 99_000 }, hang)`,
    limits: { quietMs: 3_000 },
    named: /planted\.test\.mjs: "waits very long" hung: nothing was reported for 3 s/,
  },
]

for (const { what, body, named, limits } of hanging) {
  test(`RE-11 the runner ends and names ${what}`, async (t) => {
    const { code, out } = await runPlanted(t, body, limits)
    assert.match(out, named)
    assert.equal(code, 1)
  })
}

test('RE-11 a hung test is killed with the processes that it started', async (t) => {
  const seconds = uniqueSeconds()
  const body = `import { spawn } from 'node:child_process'
test('starts a child', async () => { spawn('sleep', ['${seconds}'], { stdio: 'inherit' }); for (;;); })`
  const { code, out } = await runPlanted(t, body)
  assert.match(out, /"starts a child" held the event loop/)
  assert.equal(code, 1)
  assert.deepEqual(pidsWithCommandLine(`sleep ${seconds}`), [])
})

test('RE-11 tests that pass pass, and a file without a test fails', async (t) => {
  const passing = await runPlanted(t, `describe('suite', () => { test('passes', () => undefined) })`)
  assert.equal(passing.code, 0, passing.out)
  const empty = await runPlanted(t, '')
  assert.match(empty.out, /planted\.test\.mjs contains no test/)
  assert.equal(empty.code, 1)
})

test('RE-11 a wait names what it waited for, also when its condition hangs', async () => {
  const never = () => new Promise<boolean>(() => undefined)
  await assert.rejects(
    waitUntil(() => false, 'the answer', 30),
    /within 30 ms: the answer/,
  )
  await assert.rejects(waitUntil(never, 'the hung answer', 30), /within 30 ms: the hung answer/)
  await assert.rejects(
    within(never(), () => 'a promise', 30),
    /within 30 ms: a promise/,
  )
  await assert.rejects(
    waitUntil(() => Promise.reject(new Error('broken')), 'x'),
    /broken/,
  )
})
