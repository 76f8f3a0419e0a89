import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeFlags } from '../../../test/fakes/agents/line-parsers.ts'
import { acpArgs, configContent, oneShotArgs } from './args.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const sessionId = fc.stringMatching(/^ses_[A-Za-z0-9]{8,30}$/)
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

test('AG-13 opencode property 4: the command has run, json and the model if one is set; the prompt is on stdin', () => {
  fc.assert(
    fc.property(fc.option(word, { nil: undefined }), fc.array(word), (model, args) => {
      const made = oneShotArgs({ settings: makeFlags({ args }), model })
      assert.equal(made[0], 'run')
      assert.equal(followedBy(made, '--format'), 'json')
      if (model !== undefined) assert.equal(followedBy(made, '--model'), model)
      else assert.ok(!made.slice(0, made.length - args.length).includes('--model'))
      assert.deepEqual(made.slice(made.length - args.length), args)
      assert.deepEqual(acpArgs({ args }), ['acp', ...args])
    }),
    RUNS,
  )
})

test('AG-13 opencode property 5: the session flags are given exactly for a session', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), (id) => {
      const args = oneShotArgs({ settings: makeFlags(), sessionId: id })
      assert.equal(args.includes('--continue'), id !== undefined)
      assert.equal(args.includes('--session'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--session'), id)
    }),
    RUNS,
  )
})

test('AG-16 opencode, which by default never asks, gets a list of what it may do without asking', () => {
  const mcpServers = [{ name: 'team', command: 'node', args: ['x.js'], env: { A: 'b' } }]
  const config = (policy: 'ask' | 'allowed_tools' | 'bypass') =>
    JSON.parse(configContent({ settings: makeFlags({ permission: policy, allowedTools: ['bash'] }), mcpServers }))
  const { permission, mcp } = config('allowed_tools')
  assert.deepEqual([permission['*'], permission.bash, permission.edit], ['ask', 'allow', undefined])
  assert.deepEqual([permission.read, permission['team_*']], ['allow', 'allow'])
  const one = { settings: makeFlags({ permission: 'ask', allowedTools: ['bash(git status)', 'bash(ls)', 'write'] }) }
  const rules = JSON.parse(configContent({ ...one, mcpServers: [] })).permission
  assert.deepEqual([rules.bash, rules.edit], [{ '*': 'ask', 'git status': 'allow', ls: 'allow' }, 'allow'])
  assert.deepEqual(mcp.team, { type: 'local', command: ['node', 'x.js'], environment: { A: 'b' }, enabled: true })
  const remote = { name: 'molecule', url: 'http://x/mcp', tokenVariable: 'T', token: 'hush', program: mcpServers[0] }
  const withUrl = configContent({ settings: makeFlags({}), mcpServers: [remote as never] })
  const headers = { Authorization: 'Bearer {env:T}' }
  assert.deepEqual(JSON.parse(withUrl).mcp.molecule, { type: 'remote', url: 'http://x/mcp', headers, enabled: true })
  assert.ok(!withUrl.includes('hush'))
  assert.deepEqual(config('bypass').permission, { '*': 'allow' })
  assert.ok(oneShotArgs({ settings: makeFlags() }).includes('--auto'))
  assert.ok(!oneShotArgs({ settings: makeFlags({ permission: 'allowed_tools' }) }).includes('--auto'))
})
