import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeFlags } from '../../../test/fakes/agents/line-parsers.ts'
import { openclawArgs, sessionIdIn, timeoutSecondsOf } from './args.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

test('AG-6 AG-13 openclaw: required flags, and exactly one session: the known one or a new one', () => {
  fc.assert(
    fc.property(
      fc.option(fc.uuid(), { nil: undefined }),
      fc.uuid(),
      fc.option(word, { nil: undefined }),
      (...given) => {
        const [sessionId, newSessionId, model] = given
        const call = { settings: makeFlags(), sessionId, newSessionId, model, promptFile: '/private/message.md' }
        const args = openclawArgs({ ...call, agent: 'main', isLocal: true, timeoutSeconds: 330 })
        assert.deepEqual(args.slice(0, 4), ['agent', '--local', '--agent', 'main'])
        assert.equal(followedBy(args, '--timeout'), '330')
        const byGateway = openclawArgs({ ...call, agent: 'main', isLocal: false, timeoutSeconds: 330 })
        assert.deepEqual(byGateway, args.toSpliced(1, 1))
        // Not --session-id, as the seed has it: that forgets a session which the gateway's HTTP endpoint began.
        const key = followedBy(args, '--session-key') ?? ''
        assert.equal(key, `agent:main:explicit:${sessionId ?? newSessionId}`)
        assert.equal(sessionIdIn(key), sessionId ?? newSessionId)
        assert.equal(args.filter((arg) => arg.startsWith('--session')).length, 1)
        assert.equal(followedBy(args, '--message-file'), '/private/message.md')
        assert.ok(args.includes('--json'))
        if (model !== undefined) assert.equal(followedBy(args, '--model'), model)
      },
    ),
    RUNS,
  )
})

test("AG-6 openclaw's own limit is later than Molecule's, and off without one", () => {
  assert.equal(timeoutSecondsOf([300_000, undefined]), 330)
  assert.equal(timeoutSecondsOf([300_000, 1_500]), 32)
  assert.equal(timeoutSecondsOf([undefined, undefined]), 0)
})
