import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isAlive, linuxOnly, markedPids } from '../../test/harness/live-processes.ts'
import { createProcessHarness } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { type Clock, systemClock, TIMER_MS_MAX } from '../clock.ts'

const MEBIBYTE = 1024 * 1024

test('a run gives stdout, exit code and stderr, and the child has nothing of our environment', async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const result = await sh('cat; echo oh >&2; exit 3', { input: 'hello' })
  assert.equal(result.end, 'exited')
  assert.equal(result.exitCode, 3)
  assert.equal(text(result.stdout), 'hello')
  assert.equal(text(result.stderrTail), 'oh\n')
  assert.equal(result.stderrCut, false)
  const listed = await sh('', { command: ['env'], env: { PATH: '/usr/bin:/bin', A: 'b' }, mark: 'listed' })
  const variables = text(listed.stdout).trim().split('\n').sort()
  assert.deepEqual(variables, ['A=b', `MOLECULE_TURN=${owner}:listed`, 'PATH=/usr/bin:/bin'])
})

test('RE-5 a timeout ends the whole group', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const result = await sh('sleep 300 & sleep 300', { timeoutMs: 200 })
  assert.equal(result.end, 'timed_out')
  assert.deepEqual(markedPids(owner), [])
})

test('RE-5 a cancel also ends processes that left the group by setsid or a double fork', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const cancel = new AbortController()
  const line = "setsid sleep 301 & (setsid sh -c 'sleep 302 & sleep 303 &' &); sleep 304"
  const running = sh(line, {}, cancel.signal)
  await waitUntil(() => markedPids(owner).length >= 5, 'all four are there')
  cancel.abort()
  assert.equal((await running).end, 'canceled')
  assert.deepEqual(markedPids(owner), [])
})

test('RE-5 escapees that keep forking are all killed', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const cancel = new AbortController()
  // Each generation lives shortly and leaves a child in its own session.
  const hydra = 'sleep 0.02; setsid "$0" -c "$HYDRA" "$0" &'
  const options = { env: { PATH: '/usr/bin:/bin', HYDRA: hydra } }
  const running = sh('setsid /bin/sh -c "$HYDRA" /bin/sh & sleep 300', options, cancel.signal)
  await waitUntil(() => markedPids(owner).length >= 2, 'it has begun')
  cancel.abort()
  await running
  assert.deepEqual(markedPids(owner), [])
})

test('a process that ignores SIGTERM is killed after its grace', async (t) => {
  const { sh } = createProcessHarness(t)
  const startedMs = performance.now()
  const result = await sh("trap '' TERM; echo ready; sleep 300", { timeoutMs: 150, killGraceMs: 100 })
  assert.equal(result.end, 'timed_out')
  assert.equal(result.signal, 'SIGKILL')
  assert.ok(performance.now() - startedMs < 5_000, 'the grace was not that of the run')
})

test('a process gets SIGTERM first, and its last output is kept', async (t) => {
  const { sh } = createProcessHarness(t)
  const cancel = new AbortController()
  const line = "trap 'echo bye >&2; exit 7' TERM; echo ready; while :; do sleep 0.02; done"
  const ready = Promise.withResolvers<void>()
  const running = sh(line, { killGraceMs: 10_000, onOutput: () => ready.resolve() }, cancel.signal)
  await ready.promise
  cancel.abort()
  const result = await running
  assert.equal(result.end, 'canceled')
  assert.equal(result.exitCode, 7)
  assert.match(text(result.stderrTail), /bye\n$/)
})

test('RE-5 a grandchild that holds the pipe does not delay the end of the run, and is killed', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const result = await sh('sleep 300 & echo hi')
  assert.equal(result.end, 'exited')
  assert.equal(text(result.stdout), 'hi\n')
  assert.deepEqual(markedPids(owner), [])
})

test('RE-5 an escapee that holds the pipe does not delay the run, and is swept soon after', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const result = await sh('setsid sleep 300 & echo hi')
  assert.equal(result.exitCode, 0)
  assert.equal(text(result.stdout), 'hi\n')
  await waitUntil(() => markedPids(owner).length === 0, 'the escapee is gone')
})

test('output that a grandchild writes after the leader exited is kept', async (t) => {
  const { sh } = createProcessHarness(t)
  // Writes only after the leader has been reaped.
  const writer = 'while kill -0 $$ 2>/dev/null; do :; done; head -c 500000 /dev/zero'
  const result = await sh(`(${writer}) & echo early`)
  assert.equal(result.stdout.length, 'early\n'.length + 500_000)
})

test('RE-5 zombies that are never reaped do not delay the end', linuxOnly, async (t) => {
  const { sh } = createProcessHarness(t)
  // The first sleep stays in our group and dies; its parent left the group and never reaps it.
  const startedMs = performance.now()
  const result = await sh('(sleep 0.01 & exec setsid sleep 300 >/dev/null 2>&1) & sleep 0.2; echo hi')
  assert.equal(text(result.stdout), 'hi\n')
  assert.ok(performance.now() - startedMs < 4_500, 'waited for a zombie to die')
})

test('a command that prints without end is cut at its limit and killed', linuxOnly, async (t) => {
  const { sh, owner } = createProcessHarness(t)
  const result = await sh('yes', { outputBytesMax: 100_000 })
  assert.equal(result.end, 'output_too_large')
  assert.equal(result.stdout.length, 100_000)
  assert.deepEqual(markedPids(owner), [])
})

test('output of exactly the limit is complete, and one byte more is too large', async (t) => {
  const { sh } = createProcessHarness(t)
  const whole = await sh('head -c 5000 /dev/zero', { outputBytesMax: 5_000 })
  assert.deepEqual([whole.end, whole.stdout.length], ['exited', 5_000])
  const over = await sh('head -c 5001 /dev/zero', { outputBytesMax: 5_000 })
  assert.deepEqual([over.end, over.stdout.length], ['output_too_large', 5_000])
})

test('a child that never reads its input, or closes it, does no harm', async (t) => {
  const { sh } = createProcessHarness(t)
  const input = 'x'.repeat(MEBIBYTE)
  const deaf = await sh('sleep 0.05; echo done', { input })
  assert.deepEqual([deaf.exitCode, text(deaf.stdout)], [0, 'done\n'])
  const closed = await sh('exec 0<&-; echo done', { input })
  assert.deepEqual([closed.exitCode, text(closed.stdout)], [0, 'done\n'])
})

test('only the end of stderr is kept, and stderrCut says so', async (t) => {
  const { sh } = createProcessHarness(t)
  const result = await sh('head -c 300000 /dev/zero >&2; printf end >&2', { stderrBytesKept: 10 })
  assert.equal(text(result.stderrTail), '\0\0\0\0\0\0\0end')
  assert.equal(result.stderrCut, true)
})

test('a failed start names its cause: program, folder, environment', async (t) => {
  const { sh } = createProcessHarness(t)
  const missing = await sh('', { command: ['/nowhere/program'] })
  assert.equal(missing.end, 'spawn_failed')
  assert.match(missing.cause?.message ?? '', /ENOENT/)
  const lost = await sh('true', { cwd: '/nowhere' })
  assert.equal(lost.end, 'spawn_failed')
  assert.match(lost.cause?.message ?? '', /working folder \/nowhere does not exist/)
  const nul = await sh('true', { env: { BAD: 'a\0b' } })
  assert.equal(nul.end, 'spawn_failed')
})

test('a run with an aborted signal starts nothing', async (t) => {
  const { sh, dir } = createProcessHarness(t)
  const result = await sh('touch started', {}, AbortSignal.abort())
  assert.equal(result.end, 'canceled')
  assert.ok(!existsSync(join(dir, 'started')))
})

test('RE-5 close ends running processes and sweeps, once, and nothing starts after it', linuxOnly, async (t) => {
  const { sh, owner, processes, dir } = createProcessHarness(t)
  await sh('setsid sleep 300 >/dev/null 2>&1 & true')
  const running = sh('sleep 300')
  await waitUntil(() => markedPids(owner).length === 2, 'both are there')
  await Promise.all([processes.close(), processes.close()])
  assert.deepEqual(markedPids(owner), [])
  assert.equal((await running).end, 'canceled')
  assert.equal((await sh('touch started')).end, 'canceled')
  assert.ok(!existsSync(join(dir, 'started')))
})

test('a timeout longer than any timer is waited for in steps', async (t) => {
  const waits: number[] = []
  let nowMs = 0
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      waits.push(delayMs)
      nowMs += delayMs
      const timer = setImmediate(callback)
      return () => clearImmediate(timer)
    },
  }
  const { sh } = createProcessHarness(t, { clock })
  const result = await sh('sleep 300', { timeoutMs: 2 * TIMER_MS_MAX + 5 })
  assert.equal(result.end, 'timed_out')
  assert.deepEqual(waits.slice(0, 3), [TIMER_MS_MAX, TIMER_MS_MAX, 5])
})

test('pipes are closed although an escapee that cannot be found still holds them', linuxOnly, async (t) => {
  const { sh } = createProcessHarness(t)
  const before = readdirSync('/proc/self/fd').length
  const leaving = `setsid env -i /bin/sh -c 'echo $$ > "$0"; exec sleep 300' "$f"`
  const line = `f="$PWD/$$"; ${leaving} & while [ ! -s "$f" ]; do sleep 0.01; done; cat "$f"`
  const results = await Promise.all(Array.from({ length: 8 }, () => sh(line)))
  const escapees = results.map((result) => Number(text(result.stdout))).filter((pid) => pid > 1)
  t.after(() => {
    for (const pid of escapees) process.kill(pid, 'SIGKILL')
  })
  assert.equal(escapees.length, 8)
  await waitUntil(() => readdirSync('/proc/self/fd').length < before + 8, 'they are closed')
  assert.ok(escapees.every(isAlive))
})

test('no way of ending leaves a file descriptor open', linuxOnly, async (t) => {
  const { sh } = createProcessHarness(t)
  const all = () =>
    Promise.all([
      sh('cat', { input: 'x' }),
      sh('setsid sleep 300 & echo hi'),
      sh('sleep 300', { timeoutMs: 20 }),
      sh('yes', { outputBytesMax: 1000 }),
      sh('exec 0<&-; sleep 0.02', { input: 'x'.repeat(MEBIBYTE) }),
      sh('', { command: ['/nowhere/program'] }),
      sh('true', { env: { BAD: 'a\0b' } }),
    ])
  await all()
  const before = readdirSync('/proc/self/fd').length
  for (let round = 0; round < 3; round += 1) await all()
  // Other tests may have closed some of theirs meanwhile. A leak of three rounds would be 21 and more.
  await waitUntil(() => readdirSync('/proc/self/fd').length < before + 7, 'they are closed')
})

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
