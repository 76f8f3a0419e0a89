import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import { type ClaudeCommandOptions, claudeCommand, mcpConfig } from './args.ts'

/** Words that are no flags, as sessions, models and tools are. */
const word = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9 ()*:._-]{0,20}$/)
const settings: fc.Arbitrary<ClaudeCommandOptions['settings']> = fc.record({
  bin: word,
  args: fc.array(word, { maxLength: 3 }),
  mode: fc.constantFrom<CliSettings['mode']>('session', 'oneshot'),
  permission: fc.constantFrom<CliSettings['permission']>('ask', 'allowed_tools', 'bypass'),
  allowedTools: fc.array(word, { maxLength: 4 }),
  maxTurns: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: undefined }),
})
const options: fc.Arbitrary<ClaudeCommandOptions> = fc.record({
  settings,
  model: fc.option(word, { nil: undefined }),
  sessionId: fc.option(fc.uuid(), { nil: undefined }),
  systemPromptFile: fc.option(word, { nil: undefined }),
  mcpConfigFile: fc.option(word, { nil: undefined }),
  trustedServers: fc.array(word, { maxLength: 2 }),
  unknownOptions: fc.constantFrom(
    new Set<string>(),
    new Set(['--system-prompt-snapshot', '--include-partial-messages']),
  ),
})

/** The words that follow each occurrence of the flag. */
const valuesOf = (command: readonly string[], flag: string) =>
  command.flatMap((one, at) => (one === flag ? [command[at + 1]] : []))

test('AG-13 property 1: the command always has the flags that claude needs', () => {
  fc.assert(
    fc.property(options, (one) => {
      const command = claudeCommand(one)
      assert.deepEqual(command.slice(0, 2 + one.settings.args.length), [one.settings.bin, '-p', ...one.settings.args])
      const isWarm = one.settings.mode === 'session'
      assert.deepEqual(valuesOf(command, '--output-format'), [isWarm ? 'stream-json' : 'json'])
      assert.deepEqual(valuesOf(command, '--input-format'), isWarm ? ['stream-json'] : [])
      // stream-json is refused without it, and json becomes an array with it.
      assert.equal(command.includes('--verbose'), isWarm)
      const turns = one.settings.maxTurns
      assert.deepEqual(valuesOf(command, '--max-turns'), turns === undefined ? [] : [String(turns)])
      assert.deepEqual(valuesOf(command, '--model'), one.model === undefined ? [] : [one.model])
    }),
  )
})

test('AG-13 property 5: the resume flag is given exactly for a session', () => {
  fc.assert(
    fc.property(options, (one) => {
      const command = claudeCommand(one)
      assert.deepEqual(valuesOf(command, '--resume'), one.sessionId === undefined ? [] : [one.sessionId])
      const isKnown = !one.unknownOptions.has('--system-prompt-snapshot')
      const isRenewed = isKnown && one.sessionId !== undefined && one.systemPromptFile !== undefined
      assert.deepEqual(valuesOf(command, '--system-prompt-snapshot'), isRenewed ? ['off'] : [])
    }),
  )
})

test('AG-13 AG-16 the permission flags follow the setting, and bypass is given only if it is set', () => {
  fc.assert(
    fc.property(options, (one) => {
      const { permission, allowedTools } = one.settings
      const command = claudeCommand(one)
      const isBypass = permission === 'bypass'
      assert.equal(command.includes('--dangerously-skip-permissions'), isBypass)
      const mode = { ask: ['default'], allowed_tools: ['dontAsk'], bypass: [] }[permission]
      assert.deepEqual(valuesOf(command, '--permission-mode'), mode)
      assert.deepEqual(valuesOf(command, '--permission-prompt-tool'), permission === 'ask' ? ['stdio'] : [])
      const tools = [...allowedTools, ...one.trustedServers.map((name) => `mcp__${name}`)]
      assert.deepEqual(valuesOf(command, '--allowedTools'), isBypass ? [] : tools)
      // It takes every word after it, so a flag must follow its value.
      for (const [at, flag] of command.entries()) {
        if (flag === '--allowedTools') assert.match(command[at + 2] ?? '--', /^--/)
      }
    }),
  )
})

test('the MCP servers of a turn are loaded at once, so that the model sees their tools', () => {
  const config = JSON.parse(mcpConfig([{ name: 'lab', command: 'node', args: ['s.mjs'], env: { A: 'b' } }]))
  const server = { type: 'stdio', command: 'node', args: ['s.mjs'], env: { A: 'b' }, alwaysLoad: true }
  assert.deepEqual(config, { mcpServers: { lab: server } })
})
