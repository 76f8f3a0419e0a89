import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PermissionPolicy } from '../engine/cli/cli-options.ts'
import { appServerCommand, type ExecCommandOptions, execCommand, mcpConfig, mcpVariables, tomlString } from './args.ts'
import { instructionsHash, promptFor, readSession, usedSince, writeSession } from './session.ts'

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
const count = fc.nat(1e6)
const totals = fc.record({ input: count, output: count }, { noNullPrototype: true })
const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/)
const server = fc.record({
  name,
  command: words,
  args: fc.array(words, { maxLength: 3 }),
  env: fc.dictionary(fc.stringMatching(/^[A-Z][A-Z_]{0,8}$/), fc.stringMatching(/^secret-[a-z0-9]{12}$/), {
    maxKeys: 3,
  }),
  trusted: fc.boolean(),
})
const given: fc.Arbitrary<ExecCommandOptions> = fc.record({
  settings: fc.record({
    bin: fc.constant('codex'),
    args: fc.array(fc.constantFrom('-c', 'a=1', '--oss'), { maxLength: 2 }),
    permission: fc.constantFrom<PermissionPolicy>('ask', 'allowed_tools', 'bypass'),
  }),
  workingDir: words.map((text) => `/w/${text}`),
  model: fc.option(name, { nil: undefined }),
  thread: fc.option(fc.uuid(), { nil: undefined }),
  systemPrompt: fc.string({ unit: 'binary', maxLength: 40 }),
  mcpServers: fc.uniqueArray(server, { maxLength: 2, selector: (one) => one.name }),
})

test('AG-13 AG-2 property 2: codex is called with all it needs, whatever else is set', () => {
  fc.assert(
    fc.property(given, (one) => {
      const command = execCommand(one)
      // Ours where the seed has the prompt in the arguments: it comes on stdin, which `-` stands for, last.
      assert.deepEqual([command[0], command[1], command.at(-1)], ['codex', 'exec', '-'])
      for (const flag of ['--json', '--skip-git-repo-check']) assert.ok(command.includes(flag))
      assert.deepEqual(wordAfter(command, '-C'), one.workingDir)
      assert.deepEqual(wordAfter(command, '--disable'), 'plugins')
      assert.equal(command.includes('-m') && wordAfter(command, '-m'), one.model ?? false)
      const bypass = one.settings.permission === 'bypass'
      assert.equal(command.includes('--dangerously-bypass-approvals-and-sandbox'), bypass)
      assert.equal(command.includes('workspace-write'), !bypass)
    }),
    { numRuns: 300 },
  )
})

test('AG-13 AG-2 property 4: resume is there exactly when a session is, after every option', () => {
  fc.assert(
    fc.property(given, (one) => {
      const command = execCommand(one)
      const tail = one.thread === undefined ? ['-'] : ['resume', one.thread, '-']
      assert.deepEqual(command.slice(-tail.length), tail)
      assert.equal(command.includes('resume'), one.thread !== undefined)
      // Codex ignores the system prompt of a resumed thread; it would only be shown to everybody on the machine.
      const instructions = command.some((word) => word.startsWith('developer_instructions='))
      assert.equal(instructions, one.systemPrompt !== '' && one.thread === undefined)
    }),
    { numRuns: 300 },
  )
})

test('AG-13 AG-2 no value of an MCP server’s environment is on a command line, and each is in the environment', () => {
  fc.assert(
    fc.property(fc.array(server, { maxLength: 1 }), given, (mcpServers, one) => {
      const command = execCommand({ ...one, mcpServers })
      const variables = mcpVariables(mcpServers)
      for (const { env } of mcpServers) {
        for (const [key, value] of Object.entries(env)) {
          assert.ok(!command.join(' ').includes(value))
          assert.equal(variables[key], value)
        }
      }
    }),
    { numRuns: 200 },
  )
  const lab = { name: 'a', command: 'x', args: [], env: { KEY: '1' }, trusted: true }
  assert.throws(() => mcpVariables([lab, { ...lab, name: 'b', env: { KEY: '2' } }]), { code: 'bad_config' })
  assert.throws(() => mcpConfig([{ ...lab, name: 'a.b' }]), { code: 'bad_config', message: /letters, digits/ })
})

test('AG-13 AG-2 a text of any kind is one TOML string, and an over-long one is refused with the reason', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const toml = tomlString(text)
      assert.equal(JSON.parse(toml), text.toWellFormed())
      assert.ok([...toml].every((character) => character >= ' ' && character !== '\u007f'))
    }),
    { numRuns: 300 },
  )
  const long = { settings: { bin: 'codex', args: [], permission: 'ask' }, workingDir: '/', mcpServers: [] } as const
  const systemPrompt = 'x'.repeat(100 * 1024)
  assert.throws(() => execCommand({ ...long, model: undefined, thread: undefined, systemPrompt }), /mode session only/)
})

test('AG-2 the app server is started without plugins, the owner’s arguments before the word', () => {
  const command = appServerCommand({ bin: 'codex', args: ['-c', 'a=1'], permission: 'ask' })
  assert.deepEqual(command, ['codex', '--disable', 'plugins', '-c', 'a=1', 'app-server'])
})

test('AG-13 AG-2 a session comes back as it was written; what is none is lost, never begun anew in silence', () => {
  fc.assert(
    fc.property(fc.uuid(), totals, fc.string(), (thread, used, instructions) => {
      const session = { thread, totals: used, instructions }
      assert.deepEqual(readSession(writeSession(session)), session)
      assert.equal(readSession(thread)?.thread, thread)
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (token) => {
      assert.throws(() => readSession(token), { code: 'session_lost' })
    }),
    { numRuns: 200 },
  )
  assert.equal(readSession(undefined), undefined)
})

test('AG-13 AG-2 a turn used what its thread has used more than before, or all where it was counted anew', () => {
  fc.assert(
    fc.property(totals, count, count, (before, more, said) => {
      const later = { input: before.input + more, output: before.output + said }
      assert.deepEqual(usedSince(before, later), { inputTokens: more, outputTokens: said })
      const anew = { ...before, input: Math.floor(before.input / 2) }
      const used = usedSince(before, anew)
      assert.ok(used.inputTokens >= 0 && used.outputTokens >= 0)
    }),
    { numRuns: 200 },
  )
})

test('AG-2 a resumed thread is told of a system prompt that changed, once, and of no other', () => {
  const session = { thread: 't', totals: { input: 0, output: 0 }, instructions: instructionsHash('old') }
  assert.equal(promptFor('hi', 'old', session), 'hi')
  assert.equal(promptFor('hi', 'new', undefined), 'hi')
  assert.match(promptFor('hi', 'new', session), /instructions .* have changed. They are now:\n\nnew\n\n---\n\nhi$/)
  assert.match(promptFor('hi', '', session), /no longer apply/)
})

const wordAfter = (command: readonly string[], flag: string): string | undefined => command[command.indexOf(flag) + 1]
