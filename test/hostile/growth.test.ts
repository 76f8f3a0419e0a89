/**
 * RE-13 finds the next text that would hold the event loop: every regular expression of the source, and every parser of
 * text from outside, is fed with repeated fragments of its own alphabet. Twice the text must not take more than three
 * times as long. A new pattern is tested without a line here; a new parser needs an entry in `PARSERS`.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { parseSync, Visitor } from 'oxc-parser'
import { errorInAnswer } from '../../src/backends/engine/acp/acp-errors.ts'
import { splitWords } from '../../src/backends/engine/cli/split-words.ts'
import { providerError } from '../../src/backends/engine/failure/agent-errors.ts'
import { driftInText } from '../../src/backends/engine/failure/drift.ts'
import { parseResetDelayMs } from '../../src/backends/engine/failure/reset-time.ts'
import { openclawError } from '../../src/backends/openclaw/outcome.ts'
import { failedCallIn } from '../../src/backends/opencode/parse.ts'
import { createMarkdownWriter } from '../../src/cli/chat/markdown.ts'
import { droppedPaths } from '../../src/cli/files/dropped-paths.ts'

import { tablesAsCode } from '../../src/doors/chat/markdown/markdown-tables.ts'
import { renderDiscord } from '../../src/doors/discord/discord-markdown.ts'
import { renderMatrix, toMatrixHtml } from '../../src/doors/matrix/matrix-html.ts'
import { readable } from '../../src/doors/slack/slack-messages.ts'
import { renderSlack } from '../../src/doors/slack/slack-mrkdwn.ts'
import { renderTelegram } from '../../src/doors/telegram/telegram-html.ts'
import { maskPatterns, silentLog } from '../../src/log.ts'
import { divideMarkdown, parseMarkdown } from '../../src/markdown.ts'
import { withoutControls } from '../../src/printable.ts'
import { safeFileName, shownFileName } from '../../src/protocol/file-name.ts'
import { findJsonObject } from '../../src/protocol/json.ts'
import { explainFailure } from '../../src/runtime/failure-sentence.ts'
import { maskTokens } from '../../src/token-mask.ts'
import { publicReason } from '../../src/views/public-reason.ts'
import { countWords } from '../../src/workspaces/memory/words.ts'
import { settleStreaming } from '../../web/src/ui/text/markdown-text.ts'
import { leaseOf } from '../fakes/letters.ts'
import { hostileTexts, type RepeatedText } from '../generators/pattern-texts.ts'
import { judgeGrowth } from '../harness/measures/growth.ts'

/** Superlinear patterns that meet no text from outside, or only a short one, by their source. */
const EXEMPT: Readonly<Record<string, string>> = {
  '(?:mol_[\\w-]*|\\bm(?:ol?)?)$': 'reads the last 512 characters of a piece',
  '\\/:(\\w+)(?:\\{[^}]*\\})?': 'reads the paths of our own routes',
  '\\n\\(Did you mean (.*)\\?\\)$': 'reads the error of our own command line',
}

interface FoundPattern {
  readonly at: string
  readonly pattern: RegExp
}

function findPatterns(file: string): FoundPattern[] {
  const text = readFileSync(file, 'utf8')
  const found: FoundPattern[] = []
  const visitor = new Visitor({
    Literal(node) {
      if (!('regex' in node)) return
      const at = `${file}:${text.slice(0, node.start).split('\n').length}`
      found.push({ at, pattern: new RegExp(node.regex.pattern, node.regex.flags) })
    },
  })
  visitor.visit(parseSync(file, text).program)
  return found
}

/** As the source uses it: a global pattern finds all, another one the first. */
const runOf =
  (pattern: RegExp) =>
  (text: string): unknown => {
    pattern.lastIndex = 0
    return pattern.global ? text.replace(pattern, '') : pattern.exec(text)
  }

async function judgeAll(run: (text: string) => unknown, texts: readonly RepeatedText[]): Promise<string | undefined> {
  for (const text of texts) {
    // The runner takes a test that holds the event loop for a test that hangs.
    await setImmediate()
    const problem = judgeGrowth(run, text)
    if (problem !== undefined) return problem
  }
  return undefined
}

test('RE-13 the time of every pattern grows in step with its text', { timeout: 600_000 }, async () => {
  const files = [...globSync('src/**/*.ts'), ...globSync('web/src/**/*.{ts,tsx}')].filter((f) => !f.includes('.test.'))
  const patterns = files.flatMap(findPatterns)
  assert.ok(patterns.length > 300, `found only ${patterns.length} patterns`)
  const used = new Set<string>()
  const problems: string[] = []
  for (const { at, pattern } of patterns) {
    const isExempt = EXEMPT[pattern.source] !== undefined
    if (isExempt) used.add(pattern.source)
    const problem = isExempt ? undefined : await judgeAll(runOf(pattern), hostileTexts(pattern))
    if (problem !== undefined) problems.push(`${at} ${pattern}: ${problem}`)
  }
  assert.deepEqual(problems, [])
  assert.deepEqual([...used].sort(), Object.keys(EXEMPT).sort(), 'every exemption is of a pattern that exists')
})

test('RE-13 the judge finds a quadratic and an exponential pattern', async () => {
  for (const pattern of [/\{.*\}/s, /^(a+)+$/]) {
    assert.notEqual(await judgeAll(runOf(pattern), hostileTexts(pattern)), undefined, String(pattern))
  }
})

const MARKDOWN = [
  ...['[', '![', '](', '`', '``', '```\n', '~~~\n', '**', '*a ', '_', '~~', '> ', '>', '- ', '1. ', '#', '# a\n'],
  ...['|', 'a|b\n', '-|-\n', 'a|b\n-|-\nx\n', ' ', '\n', '\t', '\\', '<', '<http://a', '&', 'a', '漢', ' - [ ] '],
]
const PROSE = [
  ...['.', ' ', '\n', 'a', '0', '-', '_', '/', '\\', '"', "'", ':', '=', '{', '}', '[', ']', '(', '|', 'eyJ-', 'eyJ'],
  ...['token=', '-----BEGIN PRIVATE KEY-----', 'Bearer ', '://a:', 'mol_', 'reset ', 'try again in 1', 'HTTP 4', 'at '],
  ...[
    'option "--a',
    'tool a',
    'model a',
    'message="stream error"',
    ' session.id=',
    '/a/b',
    '\u0300',
    '\u202e',
    '\u001b[',
  ],
]
const NOW_MS = Date.UTC(2026, 0, 1)
const LEASE = leaseOf()

const showMarkdown = (text: string): unknown =>
  divideMarkdown(text).map((part) => (part.isPlain ? undefined : parseMarkdown(part.text)))

/** Parsers and writers of text from outside, each with the fragments of its alphabet. */
const PARSERS: Readonly<Record<string, readonly [run: (text: string) => unknown, units: readonly string[]]>> = {
  'a name on a disk': [(text) => safeFileName(text, 'file'), PROSE],
  'a name that is shown': [shownFileName, PROSE],
  'masking of keys': [maskPatterns, PROSE],
  'masking of tokens': [maskTokens, PROSE],
  'a failure': [
    (message) => {
      const outcome = { type: 'dead', failure: { code: 'agent_failed', message, details: { message } } } as const
      return explainFailure(outcome, LEASE, { log: silentLog, mask: maskPatterns })
    },
    PROSE,
  ],
  'the time of a reset': [(text) => parseResetDelayMs(text, NOW_MS), PROSE],
  'the error of a provider': [(text) => providerError('x', { text, status: undefined, nowMs: NOW_MS }), PROSE],
  'the error of an ACP agent': [(text) => errorInAnswer(text, NOW_MS), PROSE],
  'the error of openclaw': [(text) => openclawError(text, NOW_MS), PROSE],
  'the log of opencode': [failedCallIn, PROSE],
  'an unknown argument': [driftInText, PROSE],
  'JSON in a text': [findJsonObject, PROSE],
  'a reason without paths': [publicReason, PROSE],
  'the words of a memory': [countWords, PROSE],
  'the words of a command': [splitWords, PROSE],
  'dropped paths': [droppedPaths, PROSE],
  'a text in a terminal': [withoutControls, PROSE],
  'tables in a chat': [tablesAsCode, MARKDOWN],
  'an answer in Discord': [renderDiscord, MARKDOWN],
  'an answer in Slack': [renderSlack, MARKDOWN],
  'a message of Slack': [readable, ['<', '>', '|', '&lt;', '<@U1|', '<https://e.org', 'a ']],
  'an answer in Telegram': [renderTelegram, MARKDOWN],
  'an answer in Matrix': [(text) => renderMatrix(text).map(toMatrixHtml), MARKDOWN],
  'an answer in a terminal': [
    (text) => {
      const writer = createMarkdownWriter(() => undefined)
      writer.push(text)
      writer.end()
    },
    MARKDOWN,
  ],
  'a growing answer on the page': [settleStreaming, MARKDOWN],
  'the Markdown parser of the page': [showMarkdown, MARKDOWN],
}

/** Each fragment alone, after and before another one, and each pair. */
function combine(units: readonly string[]): RepeatedText[] {
  return units.flatMap((unit, index) => {
    // Each fragment meets three others, so that the test takes seconds.
    const others = [1, 5, 11].map((step) => units[(index + step) % units.length] ?? '')
    return [
      ...['', 'x', '\n'].map((suffix) => ({ prefix: '', unit, suffix })),
      ...others.map((other) => ({ prefix: '', unit: unit + other, suffix: 'x' })),
      ...others.slice(0, 2).map((other) => ({ prefix: other, unit, suffix: `${other}x` })),
    ]
  })
}

for (const [name, [run, units]] of Object.entries(PARSERS)) {
  test(`RE-13 ${name}: its time grows in step with the text`, { timeout: 600_000 }, async () => {
    assert.equal(await judgeAll(run, combine(units)), undefined)
  })
}
