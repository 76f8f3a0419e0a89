import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arbitraryMarkdown } from '../../../../test/generators/markdown.ts'
import { firstText } from '../chat-context.ts'
import { splitMarkdown } from '../markdown/markdown-split.ts'
import { commandCode, endedText, type ShownTurn, workingText } from './live-text.ts'

const TURN: ShownTurn = {
  elapsedMs: 12_400,
  text: 'so far',
  characters: 6,
  tools: [],
  toolCount: 0,
  showsCommands: false,
}
const tool = (name: string, subject?: string) => ({ name, subject, state: 'started', at: '' }) as const

test('GW-15 the state comes first, then what is written so far; a long text says how much there is', () => {
  assert.equal(workingText(TURN, 2000), 'Working for 12s\n\nso far')
  assert.equal(workingText({ ...TURN, elapsedMs: 0, text: ' ' }, 2000), 'Working for 1s')
  assert.match(workingText({ ...TURN, characters: 5000 }, 2000), /^Working for 12s · 5000 characters so far, /)
  assert.equal(endedText('Ended', TURN, true), 'Ended after 12s\n\nso far')
  assert.equal(endedText('Done', TURN, false), 'Done after 12s')
})

test('GW-17 an answer that may become NO_REPLY is not shown while it grows, nor when it has', () => {
  for (const text of ['N', 'NO_REP', ' NO_REPLY\n'])
    assert.equal(workingText({ ...TURN, text }, 2000), 'Working for 12s', text)
  assert.equal(endedText('Done', { ...TURN, text: 'NO_REPLY' }, true), 'Done after 12s')
  assert.equal(workingText({ ...TURN, text: 'NO_REPLY to you' }, 2000), 'Working for 12s\n\nNO_REPLY to you')
})

test('GW-15 names of tools are for all, their commands for owners; the last five are shown', () => {
  const tools = [...'abcdef'].map((name) => tool(name, `run ${name}`))
  const turn = { ...TURN, text: '', tools, toolCount: 6 }
  assert.equal(workingText(turn, 2000), 'Working for 12s · 6 tools: ..., b, c, d, e, f')
  const owners = workingText({ ...turn, showsCommands: true }, 2000)
  assert.deepEqual(owners.split('\n').slice(0, 2), ['Working for 12s · 6 tools', '- b: `run b`'])
  const hostile = { ...turn, tools: [tool('``` \u001b[2J')], toolCount: 1 }
  assert.equal(workingText(hostile, 2000), "Working for 12s · 1 tool: ''' \\x1b[2J")
})

test('GW-15 a command is one line of code with its backticks; one that no service shows exactly is left out', () => {
  assert.equal(commandCode('ls -l'), '`ls -l`')
  assert.equal(commandCode('echo `date`'), '`` echo `date` ``')
  assert.equal(commandCode('a `b` c'), '``a `b` c``')
  assert.equal(commandCode('cat <<E\nsecond line'), '`cat <<E…`')
  assert.equal(commandCode('echo ``'), undefined)
  assert.equal(commandCode(''), undefined)
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 800 }), (subject) => {
      const code = commandCode(subject) ?? ''
      assert.ok(code.length < 200 && !code.includes('\n') && code.isWellFormed())
    }),
    { numRuns: 50 },
  )
})

test('GW-15 wherever a text is cut, its message closes what it opens, and is within the limit', () => {
  const limits = { textCharactersMax: 600 } as never
  const channel = { limits, render: (markdown: string) => splitMarkdown(markdown, 600) }
  fc.assert(
    fc.property(arbitraryMarkdown, fc.nat(), (markdown, at) => {
      const text = markdown.slice(0, at % (markdown.length + 1))
      const shown = firstText(channel, workingText({ ...TURN, text, characters: text.length }, 600)) ?? ''
      assert.ok(shown.startsWith('Working for 12s') && shown.length <= 600)
      assert.deepEqual(splitMarkdown(shown, 600), [shown])
    }),
  )
})
