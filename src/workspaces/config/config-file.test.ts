import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../errors.ts'
import { backendOptionsOf } from '../brief/brief-maker.ts'
import { backendOptions } from './backend-options.ts'
import { changeConfig, configErrorAt, costUsdPerDayMax, parseConfig, rateLimitPatienceMs } from './config-file.ts'
import { describeOutsideChange, hashConfig } from './outside-change.ts'

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

const parse = (text: string) => parseConfig(text, 'config.yaml')
const withOption = (line: string) => parse(`name: a\nruntime_config:\n  ${line}\n`)

function errorOf(work: () => unknown): MoleculeError {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof MoleculeError && error.code === 'bad_config', String(error))
    return error
  }
  return assert.fail('it is valid')
}
const messageOf = (text: string) => errorOf(() => parse(text)).message

test('PL-3 a number may be a text, and an empty value is the default', () => {
  const attempts = ['3', '"3"', '', '""', 'null'].map((value) => withOption(`max_attempts: ${value}`).maxAttempts)
  assert.deepEqual(attempts, [3, 3, 4, 4, 4])
  const slots = ['1000', '""'].map((value) => withOption(`max_concurrent_tasks: ${value}`).maxConcurrentTasks)
  assert.deepEqual(slots, [1000, 1])
  const refused = (line: string) =>
    assert.match(messageOf(`name: a\nruntime_config:\n  ${line}\n`), /^config\.yaml:3: /)
  for (const value of ['~x', '"~"', '0', '101', '1.5', 'true']) refused(`max_attempts: ${value}`)
  withOption('max_turns_per_hour: 1000000')
  refused('max_turns_per_hour: 1000001')
})

test('PL-3 a daily budget is an amount above 0, as a number or a text', () => {
  const budgetOf = (value: string) => costUsdPerDayMax(withOption(`max_cost_usd_per_day: ${value}`).runtimeConfig)
  assert.deepEqual(['0.5', '"2"', '1000000', '""', 'null'].map(budgetOf), [0.5, 2, 1_000_000, undefined, undefined])
  assert.equal(costUsdPerDayMax({}), undefined)
  for (const value of ['0', '-1', '1000001', '"~"', 'much'])
    assert.equal(
      messageOf(`name: a\nruntime_config:\n  max_cost_usd_per_day: ${value}\n`),
      'config.yaml:3: runtime_config.max_cost_usd_per_day: '.concat(
        ['"~"', 'much'].includes(value) ? 'must be a number' : 'must be a number above 0 and up to 1000000',
      ),
    )
})

test('RT-14 an empty patience is the default of an hour, and another text is refused', () => {
  const patienceOf = (value: string) => rateLimitPatienceMs(withOption(`rate_limit_patience: ${value}`).runtimeConfig)
  assert.deepEqual(['""', 'null', '0', '1500ms'].map(patienceOf), [3_600_000, 3_600_000, 0, 1500])
  assert.match(
    messageOf('name: a\nruntime_config:\n  rate_limit_patience: "~"\n'),
    /must be a duration from 0s to 24h, such as 30m$/,
  )
})

test('PL-3 names and texts are not blank, and only tier 2 runs', () => {
  for (const line of ['name: ""', 'name: " "']) assert.match(messageOf(`${line}\n`), /^config\.yaml:1: name: /)
  for (const key of ['runtime', 'model'])
    for (const value of ['""', '" "']) assert.match(messageOf(`name: a\n${key}: ${value}\n`), /^config\.yaml:2: /)
  assert.equal(parse('name: a\ntier: 2\n').name, 'a')
  assert.equal(messageOf('name: a\ntier: 3\n'), 'config.yaml:2: tier: must be 2')
  assert.match(messageOf('name: a\ntier: 1\n'), /sandbox/)
})

test('PL-3 the working folder of the file wins over that of its options, and an empty one is none', () => {
  const folderOf = (text: string) => parse(`name: a\n${text}`).workingDir
  assert.equal(folderOf('working_dir: /one\n'), '/one')
  assert.equal(folderOf('working_dir: /one\nruntime_config:\n  working_dir: /two\n'), '/one')
  assert.equal(folderOf('runtime_config:\n  working_dir: "~"\n'), '~')
  assert.equal('workingDir' in parse('name: a\nworking_dir: ""\n'), false)
})

test('PL-3 a config of 262144 characters is read, and a longer one is not', () => {
  const start = 'name: a\n#'
  const longest = start + 'x'.repeat(256 * 1024 - start.length)
  assert.equal(parse(longest).name, 'a')
  const { details, message } = errorOf(() => parse(`${longest}x`))
  const problem = { line: 1, column: 1, message: 'it is longer than 262144 characters' }
  assert.deepEqual(details, { source: 'config.yaml:1', problems: [problem] })
  assert.equal(message, `config.yaml:1: ${problem.message}`)
})

test('PL-3 an error lists each problem with line and column of its value; the message has the first', () => {
  const { message, details } = errorOf(() => parse('# mine\nname: a\nruntime: [exec]\nmodel:\n  - x\n'))
  const problems = [
    { line: 3, column: 10, message: 'runtime: must be a text' },
    { line: 5, column: 3, message: 'model: must be a text' },
  ]
  assert.deepEqual(details, { source: 'config.yaml:3', problems })
  assert.equal(message, `config.yaml:3: ${problems[0]?.message}`)
  const missing = errorOf(() => parse('\n\nrole: r\n'))
  assert.match(JSON.stringify(missing.details['problems']), /^\[\{"line":1,"column":1,"message":"name: /)
})

test('PL-3 an error of the syntax has its place and its cause, and at most 50 problems are listed', () => {
  const error = errorOf(() => parse('name: a\n  name: b\nname: c\n'))
  const [first] = error.details['problems'] as { line: number; column: number; message: string }[]
  assert.ok(first)
  assert.equal(error.message, `config.yaml:${first.line}: ${first.message}`)
  assert.ok(error.cause instanceof Error && error.cause.message.startsWith(first.message))
  const twice = errorOf(() => parse('name: a\nrole: r\nname: b\n'))
  const problem = { line: 3, column: 1, message: 'Map keys must be unique' }
  assert.deepEqual(twice.details, { source: 'config.yaml:3', problems: [problem] })
  const many = errorOf(() => parse(`name: a\n${'name: b\n'.repeat(60)}`))
  assert.equal((many.details['problems'] as unknown[]).length, 50)
})

test('PL-3 an error of another check has the place of its key, or of the nearest key above it', () => {
  const text = '# mine\nname: a\nruntime_config:\n  cmd: cat\n  list: [1]\n'
  const cause = new Error('why')
  const sourceOf = (...at: string[]) => {
    const error = configErrorAt(text, 'c.yaml', { at, message: 'wrong', cause })
    assert.equal(error.cause, cause)
    assert.equal(error.message, `${String(error.details['source'])}: wrong`)
    const [place] = error.details['problems'] as { line: number; column: number }[]
    return [error.details['source'], place?.column]
  }
  assert.deepEqual(sourceOf('runtime_config', 'list'), ['c.yaml:5', 9])
  assert.deepEqual(sourceOf('runtime_config', 'none'), ['c.yaml:4', 3])
  assert.deepEqual(sourceOf('runtime'), ['c.yaml:1', 1])
})

test('PL-3 a change keeps a long line in one piece, and adds one option to a config without options', () => {
  const role = 'word '.repeat(60).trim()
  assert.equal(changeConfig('name: a\n', { role }, 'c'), `name: a\nrole: ${role}\n`)
  for (const text of ['name: a\n', 'name: a\nruntime_config: 7\n', 'name: a\nruntime_config:\n'])
    assert.equal(changeConfig(text, { runtime_config: { cmd: 'cat' } }, 'c'), 'name: a\nruntime_config:\n  cmd: cat\n')
  assert.equal(
    changeConfig('name: a\nruntime_config:\n  cmd: cat\n', { runtime_config: { cmd: 'dog' } }, 'c'),
    'name: a\nruntime_config:\n  cmd: dog\n',
  )
  assert.equal(changeConfig(undefined, { name: 'b', model: null }, 'c'), 'name: b\n')
})

test('PL-3 the backend gets its own options and none of the keys of the platform', () => {
  const runtimeConfig = {
    max_attempts: 2,
    max_concurrent_tasks: 3,
    max_cost_usd_per_day: 4,
    rate_limit_patience: '1m',
    working_dir: '/w',
    model: 'large',
    max_turns_per_hour: 5,
    cmd: 'cat',
    timeout: 1,
    max_time: 0,
    auth_token_file: '.auth-token',
  }
  const settings = { runtimeConfig, runtime: 'exec', role: '', workingDir: '/w', maxAttempts: 2 }
  assert.deepEqual(backendOptionsOf(settings as never, '/home'), {
    model: 'large',
    max_turns_per_hour: '5',
    cmd: 'cat',
    timeout: '1s',
    max_time: 'none',
    config_dir: '/home',
    auth_token_file: '/home/.auth-token',
  })
  assert.deepEqual(backendOptions({ timeout: [1], a: { b: 1 }, c: false, d: 0 }), {
    timeout: '[1]',
    a: '{"b":1}',
    c: 'false',
    d: '0',
  })
})

test('PL-3 the note of an outside change names what changed, sorted, at most 20 keys of 64 characters', () => {
  const before = { name: 'a', role: 'r', runtime: 'exec', runtimeConfig: { cmd: 'cat', gone: 1, same: [1] } }
  const start = 'config.yaml was changed on the disk, not through the API'
  const describe = (after: Partial<typeof before> & { model?: string }) =>
    describeOutsideChange(before, { ...before, ...after })
  assert.equal(describe({}), `${start}: no setting that the platform reads differs`)
  assert.equal(
    describe({ name: 'b', model: 'm', runtimeConfig: { new: 2, cmd: 'dog', same: [1] } as never }),
    `${start}: changed name, model, runtime_config.cmd, runtime_config.gone, runtime_config.new`,
  )
  const optionsOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${String(index).padStart(2, '0')}`, 1]))
  const keys = Object.keys(optionsOf(20)).map((key) => `runtime_config.${key}`)
  const added = (count: number) =>
    describe({ runtimeConfig: { ...before.runtimeConfig, ...optionsOf(count) } as never })
  assert.equal(added(20), `${start}: changed ${keys.join(', ')}`)
  assert.equal(added(21), `${start}: changed ${keys.join(', ')} and more`)
  const long = `b${'x'.repeat(64)}`
  assert.equal(
    describe({ runtimeConfig: { ...before.runtimeConfig, [long]: 1 } as never }),
    `${start}: changed runtime_config.${long.slice(0, 64)}`,
  )
})

test('PL-3 the same text has the same hash in every version', () => {
  assert.equal(hashConfig(''), 'e3b0c44298fc1c149afbf4c8996fb924')
})
