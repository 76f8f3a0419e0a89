import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { createLog } from '../../log.ts'
import { type LogFileOptions, openLogFile } from './log-file.ts'

function open(t: TestContext, options: Partial<LogFileOptions> & { interactive?: boolean } = {}) {
  const path = join(temporaryDir(t), 'molecule.log')
  const shown: string[] = []
  const terminal = { err: (text: string) => shown.push(text), interactive: options.interactive ?? false }
  const file = openLogFile({ path, terminal, verbose: false, ...options })
  t.after(() => file.close())
  return { path, shown, file, log: createLog('debug', file) }
}

test('every line goes to the file, only warnings and errors go to stderr', (t) => {
  const { path, shown, log } = open(t)
  log.info({}, 'an ordinary thing')
  log.warn({}, 'a thing to look at')
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ['an ordinary thing', 'a thing to look at'],
  )
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(shown, [`${lines[1]}\n`])
})

test('a terminal shows sentences without JSON and control characters; verbose shows every line', (t) => {
  const { shown, log } = open(t, { interactive: true, verbose: true })
  log.debug({ turns: 2 }, 'a detail')
  log.error({ err: new Error('disk \u001b[2Jfull'), path: '/x' }, 'it went wrong')
  assert.deepEqual(shown, ['debug: a detail turns=2\n', 'error: it went wrong (disk full) path=/x\n'])
})

test('RE-7 at its limit the file is renamed and a new one begins: five files at most, the oldest lines are gone', (t) => {
  const { path, log } = open(t, { bytesMax: 500 })
  for (let n = 1; n <= 50; n++) log.info({ n }, 'line')
  const size = statSync(path).size
  assert.ok(size > 0 && size < 600, `${size} bytes`)
  const files = readdirSync(dirname(path)).sort()
  assert.deepEqual(files, ['molecule.log', ...[1, 2, 3, 4].map((age) => `molecule.log.${age}`)])
  assert.ok(statSync(`${path}.4`).size < 600)
  const kept = files.toReversed().flatMap((name) =>
    readFileSync(join(dirname(path), name), 'utf8')
      .trim()
      .split('\n'),
  )
  const numbers = kept.map((line) => JSON.parse(line).n)
  assert.ok(numbers[0] > 1, 'the oldest file was deleted')
  assert.deepEqual(
    numbers,
    Array.from({ length: numbers.length }, (_, index) => numbers[0] + index),
  )
  assert.match(readFileSync(path, 'utf8'), /"n":50,/)
})
