import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../errors.ts'
import { changeConfig, parseConfig, rateLimitPatienceMs } from './config-file.ts'

const problemOf = (text: string): string => {
  try {
    parseConfig(text, '/here/config.yaml')
  } catch (error) {
    assert.ok(error instanceof MoleculeError)
    assert.equal(error.code, 'bad_config')
    return error.message
  }
  return 'none'
}

test('PL-3 a config with only a name has defaults for the rest', () => {
  assert.deepEqual(parseConfig('name: Ada\n', 'config.yaml'), {
    name: 'Ada',
    role: '',
    runtime: 'claude-code',
    runtimeConfig: {},
    maxAttempts: 4,
    maxConcurrentTasks: 1,
  })
})

test('PL-3 every setting of a config is read, and unknown keys are ignored', () => {
  const text = `name: Ada
role: engineer
runtime: exec
model: large
skills: [one, two]
runtime_config:
  model: larger
  cmd: cat
  timeout: 0
  auth_token_file: .auth-token
  max_attempts: "2"
  max_concurrent_tasks: 8
  working_dir: /srv
`
  const config = parseConfig(text, 'config.yaml')
  assert.deepEqual([config.name, config.role, config.runtime, config.model], ['Ada', 'engineer', 'exec', 'large'])
  assert.deepEqual([config.maxAttempts, config.maxConcurrentTasks, config.workingDir], [2, 8, '/srv'])
  assert.equal(config.runtimeConfig['timeout'], 0)
})

test('RT-14 rate_limit_patience is a duration up to a day, a number of seconds, or an hour', () => {
  const patience = (line: string) =>
    rateLimitPatienceMs(parseConfig(`name: a\nruntime_config:\n  cmd: cat\n${line}`, 'c').runtimeConfig)
  const given = ['', '  rate_limit_patience:\n', '  rate_limit_patience: 90\n', '  rate_limit_patience: 1h30m\n']
  assert.deepEqual(given.map(patience), [3_600_000, 3_600_000, 90_000, 5_400_000])
  assert.deepEqual(
    ['0', '0s', '24h'].map((text) => patience(`  rate_limit_patience: ${text}\n`)),
    [0, 0, 86_400_000],
  )
  for (const wrong of ['25h', '-1s', 'soon', '[1h]'])
    assert.match(
      problemOf(`name: a\nruntime_config:\n  rate_limit_patience: ${wrong}\n`),
      /^\/here\/config\.yaml:3: runtime_config\.rate_limit_patience/,
    )
})

test('PL-3 an error names the file and the line', () => {
  const wrong: readonly [string, RegExp][] = [
    ['name: a\nrole: [\n', /^\/here\/config\.yaml:[23]: /],
    ['name: a\nname: b\n', /^\/here\/config\.yaml:2: .*unique/],
    ['# a comment\nrole: nobody\n', /^\/here\/config\.yaml:1: name: /],
    ['role: nobody\n', /^\/here\/config\.yaml:1: name: /],
    ['', /^\/here\/config\.yaml:1: name: /],
    ['- a\n- b\n', /^\/here\/config\.yaml:1: it must be a map/],
    ['name: a\n\nruntime: [exec]\n', /^\/here\/config\.yaml:3: runtime: /],
    [
      'name: a\nruntime_config:\n  cmd: cat\n  max_attempts: many\n',
      /^\/here\/config\.yaml:4: runtime_config\.max_attempts/,
    ],
    ['name: a\nruntime_config:\n  max_attempts: 0\n', /^\/here\/config\.yaml:3: runtime_config\.max_attempts/],
    ['name: a\nruntime_config:\n  max_concurrent_tasks: 1001\n', /^\/here\/config\.yaml:3: /],
    ['name: a\nruntime_config: 7\n', /^\/here\/config\.yaml:2: runtime_config: /],
    [`name: a\nrole: ${'x'.repeat(256 * 1024)}\n`, /longer than 262144 characters/],
  ]
  for (const [text, message] of wrong) assert.match(problemOf(text), message)
})

test('nested aliases that expand to gigabytes are refused', () => {
  const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(', ')}]`)
  assert.match(problemOf(`name: a\nl0: &l0 [x]\n${levels.join('\n')}\n`), /alias/i)
})

test('PL-3 a change keeps comments and other keys, merges the options and removes what is null', () => {
  const text =
    '# mine\nname: Ada # hers\nmodel: large\nskills: [one]\nruntime_config:\n  cmd: cat\n  timeout: 5 # seconds\n'
  const change = { role: 'engineer', model: null, runtime_config: { cmd: null, list: ['a', { b: 1 }] } }
  const changed = changeConfig(text, change, 'config.yaml')
  assert.match(changed, /# mine\nname: Ada # hers\n/)
  assert.match(changed, /timeout: 5 # seconds/)
  assert.doesNotMatch(changed, /model|cmd/)
  assert.deepEqual(parseConfig(changed, 'config.yaml').runtimeConfig, { timeout: 5, list: ['a', { b: 1 }] })
  assert.equal(parseConfig(changeConfig('', { name: 'new' }, 'config.yaml'), 'config.yaml').name, 'new')
})

test('PL-3 a change works on any config: empty, without options, with invalid options', () => {
  const change = { name: 'new', runtime_config: { cmd: 'cat', gone: null } }
  for (const text of [
    '',
    '# only a comment\n',
    'null\n',
    '{}',
    'name: a\nruntime_config:\n',
    'name: a\nruntime_config: 7\n',
  ]) {
    const changed = changeConfig(text, change, 'config.yaml')
    const { name, runtimeConfig } = parseConfig(changed, 'config.yaml')
    assert.deepEqual([name, runtimeConfig], ['new', { cmd: 'cat' }], text)
  }
  for (const text of ['- a\n', 'text\n', '7\n']) {
    assert.throws(() => changeConfig(text, change, 'config.yaml'), /config\.yaml:1: it must be a map/)
  }
  assert.equal(changeConfig('name: a\n', { runtime_config: {} }, 'config.yaml'), 'name: a\n')
})
