import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeFlags } from '../../../test/fakes/agents/line-parsers.ts'
import { oneShotArgs } from './args.ts'

const RUNS = { numRuns: 200 }
const sessionId = fc.stringMatching(/^2026[0-9]{4}_[0-9]{6}_[0-9a-f]{6}$/)
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

test('AG-5 AG-13 hermes: required flags, resume exactly for a session, yolo only for bypass', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), fc.option(word, { nil: undefined }), (id, model) => {
      const args = oneShotArgs({ settings: makeFlags({ maxTurns: 9 }), workingDir: '/work', sessionId: id, model })
      assert.deepEqual(args.slice(0, 4), ['--in', '/work', 'chat', '--oneshot'])
      assert.equal(followedBy(args, '--query-file'), '-')
      assert.equal(followedBy(args, '--format'), 'stream-json')
      assert.equal(followedBy(args, '--max-turns'), '9')
      assert.equal(args.includes('--resume'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--resume'), id)
      if (model !== undefined) assert.equal(followedBy(args, '--model'), model)
      assert.ok(args.includes('--yolo'))
      const asked = oneShotArgs({ settings: makeFlags({ permission: 'allowed_tools' }), workingDir: '/work' })
      assert.ok(!asked.includes('--yolo'))
    }),
    RUNS,
  )
})
