/**
 * The states of a message: each transition is one statement whose SQL has the states that it names, and
 * `docs/architecture.md` prints them: `UPDATE_DOCS=1 npm test -- src/inbox/rows/message.test.ts` writes the table.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Statement } from '../../store/store.ts'
import * as message from './message.ts'
import { MESSAGE_TRANSITIONS, type MessageTransition, type NewMessage, type Transition } from './message.ts'

const ROOT = new URL('../../../', import.meta.url)
const KEY = { workspaceId: 'w', conversationId: 'c', messageId: 'm', taskId: 't', epoch: 1 }
const WAIT = { afterMs: 1, interrupted: true }
const ROW: NewMessage = {
  id: 'm',
  workspaceId: 'w',
  conversationId: 'c',
  taskId: 't',
  n: 1,
  dedupe: new Uint8Array(16),
  contentHash: 'h',
  idempotencyKey: 'k',
  envelope: '{}',
  sender: '{}',
  replyTo: null,
  expiresInMs: 1,
  begun: false,
}

/** The statement of every transition; a new transition without one does not compile. */
const STATEMENTS: Readonly<Record<MessageTransition, Statement>> = {
  insertQueued: message.insertQueued(ROW),
  insertLeased: message.insertLeased(ROW),
  insertAnswer: message.insertAnswer(ROW),
  insertReplay: message.insertReplay({ from: 'm', to: 'n', dedupe: ROW.dedupe }),
  claimMessage: message.claimMessage('m', true),
  releaseMessage: message.releaseMessage(KEY, { ...WAIT, outcome: 'released' }),
  retryMessage: message.retryMessage(KEY, { ...WAIT, sessionLost: false, parked: false }),
  returnUnbegun: message.returnUnbegun('m'),
  returnLost: message.returnLost('m'),
  finishMessage: message.finishMessage(KEY, '{}'),
  stopMessage: message.stopMessage('m', null),
  settleStopped: message.settleStopped(KEY, 'stopped'),
  closeLostStopped: message.closeLostStopped('m'),
  cancelQueued: message.cancelQueued('t'),
  failMessages: message.failMessages('t'),
  cancelWaitingOf: message.cancelWaitingOf('w'),
  cancelRunningOf: message.cancelRunningOf('w'),
  requeueAnswers: message.requeueAnswers('m'),
}

const transitions = Object.entries(MESSAGE_TRANSITIONS) as [MessageTransition, Transition][]

for (const [name, { from, to }] of transitions) {
  test(`${name} takes a message ${from.length === 0 ? '' : `from ${from.join(' or ')} `}to ${to}`, () => {
    const { text } = STATEMENTS[name]
    if (from.length === 0) {
      assert.match(text, /^insert into messages/)
      assert.match(text, new RegExp(`'${to}'`))
    } else {
      const [, before] = text.split(' where ', 2)
      assert.match(text, new RegExp(`^update messages set state = '${to}'`))
      const states = from.map((state) => `'${state}'`).join(', ')
      assert.ok(text.includes(from.length === 1 ? `and state = ${states}` : `and state in (${states})`), before)
    }
  })
}

test('each state of a message is reached, and each that is not final is left', () => {
  const reached = new Set(transitions.map(([, { to }]) => to))
  const left = new Set(transitions.flatMap(([, { from }]) => from))
  assert.deepEqual([...reached].filter((state) => !left.has(state)).sort(), ['canceled', 'dead', 'done'])
  assert.deepEqual(
    [...left].filter((state) => !reached.has(state)),
    [],
  )
})

/** Other files of the inbox that name the statement. */
function callersOf(name: string): string[] {
  const files = globSync('src/inbox/**/*.ts', { cwd: ROOT.pathname }).map((file) => file.replaceAll('\\', '/'))
  const named = new RegExp(`\\b${name}\\(`)
  const callers = files.filter(
    (file) =>
      !file.includes('.test.') &&
      !file.startsWith('src/inbox/rows/') &&
      named.test(readFileSync(new URL(file, ROOT), 'utf8')),
  )
  return callers.map((file) => `\`${file.slice('src/inbox/'.length)}\``).sort()
}

const BEGIN = 'npm test -- src/inbox/rows/message.test.ts writes it. -->\n'
const END = '<!-- The end of the states. -->\n'

test('docs/architecture.md prints the states of a message and who changes them', () => {
  const file = new URL('docs/architecture.md', ROOT)
  const page = readFileSync(file, 'utf8')
  const [before = '', after = ''] = [page.split(BEGIN)[0], page.split(END)[1]]
  const expected = `${before}${BEGIN}\n${diagram()}\n${table()}\n${END}${after}`
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, expected)
  else assert.ok(page === expected, 'docs/architecture.md is old: write it with UPDATE_DOCS=1')
})

/** One arrow for each pair of states, with the statements that go that way. */
function diagram(): string {
  const arrows = transitions.flatMap(([name, { from, to }]) =>
    (from.length === 0 ? ['[*]'] : from).map((state) => ({ arrow: `${state} --> ${to}`, name })),
  )
  const lines = [...Map.groupBy(arrows, ({ arrow }) => arrow)].map(
    ([arrow, group]) => `  ${arrow}: ${group.map(({ name }) => name).join(', ')}`,
  )
  const ends = ['done', 'canceled', 'dead', 'answer'].map((state) => `  ${state} --> [*]`)
  return ['```mermaid', 'stateDiagram-v2', ...lines, ...ends, '```', ''].join('\n')
}

/** Markdown with columns of one width. */
function table(): string {
  const rows = [
    ['statement', 'from', 'to', 'when', 'called by'],
    ...transitions.map(([name, { from, to, when }]) => {
      const callers = callersOf(name)
      assert.notDeepEqual(callers, [], `nothing calls ${name}`)
      return [`\`${name}\``, from.join(', ') || 'new', to, when, callers.join(', ')]
    }),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`)
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return `${[lines[0], rule, ...lines.slice(1)].join('\n')}\n`
}
