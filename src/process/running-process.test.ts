import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isAlive, linuxOnly, markedPids } from '../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import type { ProcessStartOptions } from './processes.ts'

function starter(t: TestContext) {
  const harness = createProcessHarness(t)
  const lines: string[] = []
  const start = (line: string, options: Partial<ProcessStartOptions> = {}) =>
    harness.processes.start({
      command: ['/bin/sh', '-c', line],
      cwd: harness.dir,
      env: PLAIN_ENVIRONMENT,
      mark: 'warm-1',
      stderrBytesKept: 1024,
      killGraceMs: 200,
      lineBytesMax: 1000,
      onLine: (text) => lines.push(text),
      ...options,
    })
  return { ...harness, lines, start }
}

test('a running process answers line by line, and ends when its stdin closes', async (t) => {
  const { start, lines } = starter(t)
  const running = start('while read -r line; do echo "got $line"; done; printf last; echo oh >&2; exit 3')
  assert.equal(await running.write('one\n'), true)
  await waitUntil(() => lines.length === 1, 'it answered')
  assert.equal(await running.write('two\r\nthree\n'), true)
  await waitUntil(() => lines.length === 3, 'it answered again')
  running.endInput()
  const result = await running.ended
  assert.deepEqual(lines, ['got one', 'got two', 'got three', 'last'])
  assert.deepEqual([result.end, result.exitCode, new TextDecoder().decode(result.stderrTail)], ['exited', 3, 'oh\n'])
  assert.equal(await running.write('late\n'), false)
  assert.equal(await running.stop(), result)
})

test('lines of stderr are emitted until one is too long, and its end is kept all the same', async (t) => {
  const { start } = starter(t)
  const errorLines: string[] = []
  const options = { onErrorLine: (line: string) => void errorLines.push(line), stderrBytesKept: 4 }
  const running = start("printf 'one\\ntwo' >&2; printf '\\n%070000d\\nend' 1 >&2", options)
  const { exitCode, stderrTail } = await running.ended
  assert.deepEqual([exitCode, errorLines, new TextDecoder().decode(stderrTail)], [0, ['one', 'two'], '\nend'])
})

test('a line longer than the limit ends the process, and a line of exactly the limit does not', async (t) => {
  const { start, lines } = starter(t)
  const running = start("printf '%01000d\\n' 1; printf '%01001d\\n' 2; sleep 300")
  const result = await running.ended
  assert.equal(result.end, 'output_too_large')
  assert.deepEqual(
    lines.map((line) => line.length),
    [1000],
  )
})

test('an error in onLine ends the process and not the platform', async (t) => {
  const { start } = starter(t)
  const onLine = () => {
    throw new Error('a defect')
  }
  assert.equal((await start('echo one; sleep 300', { onLine }).ended).end, 'canceled')
})

test('a process that cannot be started has ended and takes no input', async (t) => {
  const { start } = starter(t)
  const running = start('', { command: ['/no/such/program'] })
  const result = await running.ended
  assert.equal(result.end, 'spawn_failed')
  assert.match(result.cause?.message ?? '', /ENOENT/)
  assert.equal(await running.write('x'), false)
})

test('RE-5 stop ends the group, its escapees, and a process that ignores SIGTERM', linuxOnly, async (t) => {
  const { start, owner } = starter(t)
  const running = start("trap '' TERM; setsid sleep 301 & sleep 302")
  await waitUntil(() => markedPids(owner).length >= 3, 'all are there')
  const result = await running.stop()
  assert.deepEqual([result.end, result.signal], ['canceled', 'SIGKILL'])
  assert.deepEqual(markedPids(owner), [])
})

test('RE-5 no escapee is alive once a process that died has ended', linuxOnly, async (t) => {
  const { start, owner } = starter(t)
  const running = start('setsid sleep 303 & echo $!; kill -9 $$')
  assert.equal((await running.ended).signal, 'SIGKILL')
  assert.deepEqual(markedPids(owner), [])
})

test(
  'killChildrenSince kills the children started since a moment, not older ones and not the process itself',
  linuxOnly,
  async (t) => {
    const { start, owner, lines } = starter(t)
    const running = start(
      'setsid sleep 304 & echo old $!; read -r go; setsid sleep 305 & echo new $!; read -r go; echo alive',
    )
    await waitUntil(() => lines.length === 1 && markedPids(owner).length === 2, 'the first is there')
    const moment = await laterMoment(running)
    await running.write('go\n')
    await waitUntil(() => lines.length === 2 && markedPids(owner).length === 3, 'the second is there')
    const [old, young] = lines.map((line) => Number(line.split(' ')[1]))
    assert.equal(await running.killChildrenSince(moment), true)
    assert.ok(old !== undefined && young !== undefined && isAlive(old) && !isAlive(young))
    await running.write('go\n')
    await waitUntil(() => lines.includes('alive'), 'it goes on')
  },
)

test('close ends the process, and nothing starts after it', async (t) => {
  const { start, processes } = starter(t)
  const running = start('sleep 300')
  await processes.close()
  assert.equal((await running.ended).end, 'canceled')
  assert.equal((await start('true').ended).end, 'canceled')
})

/** Start times count in hundredths of a second. Waits for the next one, so that before and since differ. */
async function laterMoment(running: { moment(): number }): Promise<number> {
  const first = running.moment()
  await waitUntil(() => running.moment() > first + 1, 'time goes on')
  return running.moment()
}
