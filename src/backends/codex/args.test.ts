import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PermissionPolicy } from '../engine/cli/cli-options.ts'
import { appServerCommand, type ExecCommandOptions, execCommand, mcpConfig, mcpVariables, tomlString } from './args.ts'

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
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
const options: fc.Arbitrary<ExecCommandOptions> = fc.record({
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

test('AG-13 AG-2 property 2: the command always has the flags that codex needs', () => {
  fc.assert(
    fc.property(options, (one) => {
      const command = execCommand(one)
      // The prompt is never in the arguments: `-` makes codex read it from stdin.
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

test('AG-13 AG-2 property 5: resume is given exactly for a session, after every option', () => {
  fc.assert(
    fc.property(options, (one) => {
      const command = execCommand(one)
      const tail = one.thread === undefined ? ['-'] : ['resume', one.thread, '-']
      assert.deepEqual(command.slice(-tail.length), tail)
      assert.equal(command.includes('resume'), one.thread !== undefined)
      // Codex ignores the system prompt of a resumed thread; on the command line every user of the machine could read it.
      const instructions = command.some((word) => word.startsWith('developer_instructions='))
      assert.equal(instructions, one.systemPrompt !== '' && one.thread === undefined)
    }),
    { numRuns: 300 },
  )
})

test('AG-13 AG-2 the values of an MCP server’s environment are in the environment and never on the command line', () => {
  fc.assert(
    fc.property(fc.array(server, { maxLength: 1 }), options, (mcpServers, one) => {
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

test('AG-13 AG-2 every text becomes one TOML string, and a system prompt that is too long is refused', () => {
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

test('AG-2 the app server starts without plugins, with the owner’s arguments before the command', () => {
  const command = appServerCommand({ bin: 'codex', args: ['-c', 'a=1'], permission: 'ask' })
  assert.deepEqual(command, ['codex', '--disable', 'plugins', '-c', 'a=1', 'app-server'])
})

const wordAfter = (command: readonly string[], flag: string): string | undefined => command[command.indexOf(flag) + 1]
