import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeFlags } from '../../../test/fakes/agents/line-parsers.ts'
import { acpArgs, oneShotArgs } from './args.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._-]{1,30}$/)
const sessionId = fc.uuid()
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

test('AG-13 gemini property 3: the required flags are given, and the prompt is not on the command line', () => {
  fc.assert(
    fc.property(fc.option(word, { nil: undefined }), fc.array(word), (model, args) => {
      const made = oneShotArgs({ settings: makeFlags({ args }), model })
      assert.equal(followedBy(made, '--output-format'), 'stream-json')
      assert.equal(followedBy(made, '--approval-mode'), 'yolo')
      assert.ok(made.includes('--skip-trust'))
      if (model === undefined) assert.ok(!made.slice(0, made.length - args.length).includes('-m'))
      else assert.equal(followedBy(made, '-m'), model)
      assert.deepEqual(made.slice(made.length - args.length), args)
    }),
    RUNS,
  )
})

test('AG-13 gemini property 5: the resume flag is given exactly for a session', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), (id) => {
      const args = oneShotArgs({ settings: makeFlags(), sessionId: id })
      assert.equal(args.includes('--resume'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--resume'), id)
    }),
    RUNS,
  )
})

test('AG-16 only bypass makes gemini approve everything; allowed tools are given by name', () => {
  const settings = makeFlags({ permission: 'allowed_tools', allowedTools: ['read_file', 'run_shell_command(git)'] })
  const args = oneShotArgs({ settings })
  assert.equal(followedBy(args, '--approval-mode'), 'default')
  assert.deepEqual(args.slice(-4), ['--allowed-tools', 'read_file', '--allowed-tools', 'run_shell_command(git)'])
  assert.equal(followedBy(acpArgs({ settings: makeFlags({ permission: 'ask' }) }), '--approval-mode'), 'default')
  assert.equal(followedBy(acpArgs({ settings: makeFlags() }), '--approval-mode'), 'yolo')
})
