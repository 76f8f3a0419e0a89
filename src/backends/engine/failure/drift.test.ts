import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../errors.ts'
import { RpcError } from '../json-rpc.ts'
import { driftError, driftIn, driftInAnswer, driftInText } from './drift.ts'

/** Real output of the programs, and the drift in it. */
const OUTPUTS: readonly (readonly [string, string])[] = [
  ["error: unknown option '--input-format'\n", 'option --input-format missing'],
  [`Unknown argument: acp\n\nUsage: gemini [options]\n${'  --help\n'.repeat(300)}`, 'option --acp missing'],
  ["error: unexpected argument '--json' found\n\n  tip: a similar argument exists", 'option --json missing'],
  ["error: unrecognized subcommand 'exec'\n", 'command exec missing'],
  [
    "error: option '--input-format <format>' argument 'stream-json' is invalid. Allowed choices are text.",
    'value of --input-format missing',
  ],
]

for (const [text, missing] of OUTPUTS) {
  test(`AG-2 drift is found: ${missing}`, () => assert.equal(driftInText(text), missing))
}

test('AG-2 an error of a provider, a network or a login is not drift', () => {
  for (const text of ['401 Unauthorized', 'fetch failed: ECONNREFUSED', 'Please run /login', 'Unknown error', '']) {
    assert.equal(driftInText(text), undefined)
  }
  assert.equal(driftInAnswer('initialize', new RpcError(-32_000, 'Gemini API key is missing')), undefined)
  assert.equal(driftInAnswer('thread/resume', new RpcError(-32_600, 'no rollout found for thread id x')), undefined)
  assert.equal(driftInAnswer('initialize', new Error('the process is gone')), undefined)
  assert.equal(driftIn(new MoleculeError('exit', 'it ended')), undefined)
})

test("AG-2 a program's own error for an unknown argument, and its error answers, are drift too", () => {
  const own = { says: /not a terminal/, missing: 'command app-server missing' }
  assert.equal(driftInText('WARNING: x\nError: stdin is not a terminal\n', own), 'command app-server missing')
  const unknown = new RpcError(-32_600, 'Invalid request: unknown variant `thread/start`, expected one of `initialize`')
  assert.equal(driftInAnswer('thread/start', unknown), 'method thread/start missing')
  assert.equal(driftInAnswer('initialize', new RpcError(-32_601, 'nope')), 'method initialize missing')
  const other = new RpcError(-32_600, 'Invalid request: missing field `mode`')
  assert.equal(driftInAnswer('initialize', other), 'parameters of initialize changed')
  assert.equal(driftInAnswer('thread/start', other), undefined, 'its parameters hold what the owner set')
  assert.equal(driftIn(driftError('codex', 'option -x missing')), 'option -x missing')
})
