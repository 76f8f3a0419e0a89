/** `.ci/run` with a fake npm that writes down what it was started with. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PLAIN_ENVIRONMENT, temporaryDir } from '../harness/process-harness.ts'

const CI_RUN = fileURLToPath(new URL('../../.ci/run', import.meta.url))

/** Answers `npm config get` from its HOME, as npm does; fails where a command is called FAILING. */
const FAKE_NPM = `#!/bin/sh
if [ "$1" = config ]; then echo "$HOME/.npm-$3"; exit; fi
found=$(ls -A "$HOME" "$XDG_CACHE_HOME" "$TMPDIR" | grep -v ':$' | tr -d '\\n')
printf '%s|%s|%s|%s|%s|%s|%s\\n' "$*" "$HOME" "$XDG_CACHE_HOME" "$TMPDIR" "$NPM_CONFIG_USERCONFIG" "$npm_config_cache" "$found" >>"$CALLS"
touch "$HOME/left" "$TMPDIR/left"
[ "$*" != "$FAILING" ]
`

function runCi(t: TestContext, failing = '') {
  const folder = temporaryDir(t)
  const [bin, home] = [join(folder, 'bin'), join(folder, 'home')]
  const [temporary, calls] = [join(folder, 'tmp'), join(folder, 'calls')]
  for (const each of [bin, home, temporary]) mkdirSync(each)
  writeFileSync(join(home, 'earlier'), '')
  writeFileSync(join(bin, 'npm'), FAKE_NPM, { mode: 0o755 })
  const PATH = `${bin}:${PLAIN_ENVIRONMENT.PATH}`
  const env = { PATH, HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: home, CALLS: calls, FAILING: failing }
  const { status, stderr } = spawnSync(CI_RUN, [], { env, encoding: 'utf8' })
  const lines = readFileSync(calls, 'utf8').trim().split('\n')
  return { status, stderr, home, left: readdirSync(temporary), calls: lines.map((line) => line.split('|')) }
}

test('RE-12 .ci/run begins with an empty HOME, cache and TMPDIR, keeps the settings of npm, and removes its folders', (t) => {
  const { status, stderr, home, left, calls } = runCi(t)
  assert.equal(status, 0, stderr)
  assert.deepEqual(
    calls.map(([command = '']) => command.split(' -- ')[0]),
    ['run check', 'test', 'run test:long', 'run test:fuzz', 'run test:crash', 'run test:clients', 'run test:agents'],
  )
  const [[, ...folders] = []] = calls
  assert.equal(folders.at(-1), '', 'nothing is there at the start')
  for (const [, ownHome = '', cache = '', temporary = '', settings, downloads] of calls) {
    assert.equal(new Set([home, ownHome, cache, temporary].map(String)).size, 4)
    assert.deepEqual([settings, downloads], [join(home, '.npm-userconfig'), join(home, '.npm-cache')])
    assert.equal(existsSync(dirname(ownHome)), false)
  }
  assert.deepEqual([left, readdirSync(home)], [[], ['earlier']])
})

test('RE-12 .ci/run ends at the first failure, and removes its folders then too', (t) => {
  const { status, left, calls } = runCi(t, 'test')
  assert.deepEqual([status, calls.map(([command]) => command), left], [1, ['run check', 'test'], []])
})
