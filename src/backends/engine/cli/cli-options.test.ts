import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { silentLog } from '../../../log.ts'
import { createOptions } from '../../options.ts'
import { chooseModel } from './choose-model.ts'
import { type CliKind, cliOptions, readCliSettings, splitTools } from './cli-options.ts'
import { splitWords } from './split-words.ts'

const KIND: CliKind = { backend: 'some', bin: 'some', modes: ['session', 'oneshot'], asksIn: ['session'], cannot: [] }

function read(values: Record<string, string>, kind: Partial<CliKind> = {}) {
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => warnings.push(message) }
  return { ...readCliSettings(createOptions(values), { ...KIND, ...kind }, log), warnings }
}

test('AG-1 an option that is not set has its default', () => {
  const { warnings, ...settings } = read({})
  assert.deepEqual(settings, {
    bin: 'some',
    args: [],
    mode: 'session',
    timeout: '5m',
    timeoutMs: 300_000,
    maxTimeMs: undefined,
    permission: 'ask',
    allowedTools: [],
    maxTurns: undefined,
    model: '',
    passMeta: true,
    mcpServers: [],
    authTokenFile: '',
    warmMax: 4,
    warmIdleMs: 600_000,
  })
  assert.deepEqual(warnings, [])
})

test('AG-16 the default is ask if the mode can ask, else allowed_tools, and never bypass', () => {
  assert.equal(read({}).permission, 'ask')
  assert.equal(read({ mode: 'oneshot' }).permission, 'allowed_tools')
  assert.equal(read({}, { asksIn: [] }).permission, 'allowed_tools')
  assert.equal(read({ permission: 'bypass' }).permission, 'bypass')
  assert.equal(read({ permission: 'ask', mode: 'oneshot' }).permission, 'allowed_tools')
})

test('AG-15 each unsupported option that is set gives a warning with its backend', () => {
  const kind = { cannot: ['max_turns', 'warm_idle'], asksIn: [] } as const
  const set = { max_turns: '3', permission: 'bypass', allowed_tools: 'Read', bin: 'x' }
  const { warnings } = read(set, kind)
  assert.equal(warnings.length, 2)
  for (const [at, option] of ['max_turns', 'allowed_tools'].entries()) {
    assert.ok(warnings[at]?.startsWith(`backend "some" cannot honour option "${option}"`), warnings[at])
  }
  const listed = Object.keys(cliOptions(kind))
  assert.ok(!listed.includes('max_turns') && listed.includes('bin'))
})

test('a duration may be none, MCP servers are read, and an invalid one is not quoted', () => {
  const none = read({ timeout: 'none', max_time: '2h', warm_idle: 'none' })
  assert.deepEqual([none.timeoutMs, none.maxTimeMs, none.warmIdleMs], [undefined, 7_200_000, Number.POSITIVE_INFINITY])
  const { mcpServers } = read({ mcp_servers: '{"a":{"command":"c","args":["x"],"env":{"K":"v"}},"b":{"command":"d"}}' })
  assert.deepEqual(mcpServers, [
    { name: 'a', command: 'c', args: ['x'], env: { K: 'v' } },
    { name: 'b', command: 'd', args: [], env: {} },
  ])
  for (const text of [
    '[',
    '[]',
    '{"a":1}',
    '{"a":{"command":1}}',
    '{"a":{"command":"c","env":{"secret":1}}}',
    '{"":{"command":"c"}}',
  ]) {
    assert.throws(
      () => read({ mcp_servers: text }),
      (error: Error) => /"mcp_servers"/.test(error.message) && !/secret/.test(error.message),
    )
  }
})

test('arguments are split as in a shell, and nothing is expanded', () => {
  assert.deepEqual(splitWords(` a  'b c' "d \\" e"f g\\ h '' $HOME * "\\n"`), [
    'a',
    'b c',
    'd " ef',
    'g h',
    '',
    '$HOME',
    '*',
    '\\n',
  ])
  assert.deepEqual(splitWords(''), [])
  for (const open of ["'", '"a', 'a\\']) assert.equal(splitWords(open), undefined)
  const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`
  fc.assert(
    fc.property(fc.array(fc.string()), (words) => {
      assert.deepEqual(splitWords(words.map(quoted).join(' ')), words)
    }),
  )
})

test('tools are split at commas outside parentheses', () => {
  assert.deepEqual(splitTools('Read, Bash(git log:*, git diff:*),,Edit '), [
    'Read',
    'Bash(git log:*, git diff:*)',
    'Edit',
  ])
  assert.deepEqual(splitTools(''), [])
})

test('AG-18 the option overrides the model of the workspace, and the provider is kept or dropped', () => {
  assert.equal(chooseModel('anthropic/sonnet', 'openai/gpt', 'dropped'), 'sonnet')
  assert.equal(chooseModel('', 'openai/gpt', 'kept'), 'openai/gpt')
  assert.equal(chooseModel('', undefined, 'kept'), undefined)
  // A first part that is not a provider belongs to the name.
  assert.equal(
    chooseModel('arn:aws:bedrock:eu/anthropic.claude', undefined, 'dropped'),
    'arn:aws:bedrock:eu/anthropic.claude',
  )
  assert.equal(chooseModel('sonnet', undefined, 'dropped'), 'sonnet')
})

test('PL-30 a model that a program would take for an option is refused, also below a provider', () => {
  for (const [model, prefix] of [
    ['--yolo', 'kept'],
    [' --yolo', 'kept'],
    ['-m', 'dropped'],
    ['openai/--yolo', 'dropped'],
  ] as const) {
    assert.throws(() => chooseModel(model, undefined, prefix), /begins with a dash/)
    assert.throws(() => chooseModel('', model, prefix), /begins with a dash/)
  }
})
