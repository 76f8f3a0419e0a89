/** Tests which mutants a source has, on small samples, and which survivors the rules accept. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ACCEPTED } from '../../test/accepted-mutants.ts'
import { findRule, unusedEdits } from './accepted.ts'
import { applyMutant, findMutants } from './mutants.ts'
import { sample, scoreOf } from './mutate.ts'

const changes = (source: string) => findMutants('a.ts', source).map((mutant) => mutant.change)

describe('the mutants of a source', () => {
  it('negates a condition', () => {
    assert.deepEqual(changes('if (open) run()'), ['if (!(open)) run()', 'if (open) ;'])
  })
  it('swaps operators', () => {
    assert.deepEqual(changes('const x = a < b && c'), ['const x = ((a) <= (b)) && c', 'const x = ((a < b) || (c))'])
    assert.deepEqual(changes('const x = a === b ? c : d'), ['const x = ((a) !== (b)) ? c : d'])
  })
  it('changes constants', () => {
    assert.deepEqual(changes(`const x = [30_000, 7, 1, 0, true, 'word']`), [
      `const x = [3000, 7, 1, 0, true, 'word']`,
      `const x = [30_000, 8, 1, 0, true, 'word']`,
      `const x = [30_000, 7, 0, 0, true, 'word']`,
      `const x = [30_000, 7, 1, 1, true, 'word']`,
      `const x = [30_000, 7, 1, 0, false, 'word']`,
      `const x = [30_000, 7, 1, 0, true, 'word~']`,
    ])
  })
  it('drops a call, a throw and an early return', () => {
    assert.deepEqual(changes('close()\nthrow problem'), [';', ';'])
    assert.deepEqual(changes('function f() {\nreturn\n}'), [';'])
  })
  it('swaps operators of SQL, but not of an assignment or of code in a placeholder', () => {
    assert.deepEqual(changes('const x = `update t set a = $1 where b = ${c} and d is null`'), [
      'const x = `update t set a = $1 where b <> ${c} and d is null`',
      'const x = `update t set a = $1 where b = ${c} or d is null`',
      'const x = `update t set a = $1 where b = ${c} and d is not null`',
    ])
  })
  it('never mutates types, imports, comments, log calls and sentences', () => {
    const source = `import { a } from '../a.ts'
export type { B } from '../b.ts'
// if (x > 1) y()
type C = 'c' | 1
const d: 'd' = e as 'd'
log.warn({ f: 1 }, \`failed \${g > 1}\`)
context.log?.error({ f: 'g' }, 'word')
const h = new Error(\`There is no \${i > 1 ? 'i' : 'j'} here.\`)
const k = { l, 'm': 'a sentence for people' }`
    assert.deepEqual(changes(source), [])
  })
  it('identifies a mutant by its lines, not by their number', () => {
    const [one] = findMutants('a.ts', 'const x = 30')
    const [moved] = findMutants('a.ts', '\n\n  const x = 30')
    assert.deepEqual([one?.line, moved?.line], [1, 3])
    assert.deepEqual([one?.source, one?.change], [moved?.source, moved?.change])
    assert.equal(moved && applyMutant('\n\n  const x = 30', moved), '\n\n  const x = 3')
  })
})

describe('the score', () => {
  const [killed, survivor] = findMutants('a.ts', 'const x = [1, 2]')
  assert.ok(killed && survivor)
  const verdicts = [
    { mutant: killed, killedBy: 'a.test.ts', ms: 1 },
    { mutant: survivor, killedBy: undefined, ms: 1 },
  ]
  it('counts a survivor', () => {
    const { score, survivors } = scoreOf(verdicts, [])
    assert.deepEqual([score, survivors.map(({ mutant }) => mutant)], [0.5, [survivor]])
  })
  it('does not count a survivor that a rule accepts, and a rule hides no kill', () => {
    const {
      score,
      survivors,
      accepted,
      killed: kills,
    } = scoreOf(verdicts, [{ reason: 'any number', edits: [/«\d → /] }])
    assert.deepEqual([score, survivors, accepted, kills], [1, [], 1, 1])
  })
  it('counts a survivor whose place or change a rule does not name', () => {
    const rules = [
      { reason: 'another change', edits: [/«2 → 1»/] },
      { reason: 'another folder', below: 'src/', edits: [/«2 → 3»/] },
    ]
    assert.deepEqual(
      scoreOf(verdicts, rules).survivors,
      [survivor].map((mutant) => ({ mutant, killedBy: undefined, ms: 1 })),
    )
  })
  it('takes the same sample for the same seed', () => {
    const items = Array.from({ length: 100 }, (_, index) => index)
    assert.deepEqual(sample(items, 10, 1), sample(items, 10, 1))
    assert.notDeepEqual(sample(items, 10, 1), sample(items, 10, 2))
    assert.equal(new Set(sample(items, 100, 3)).size, 100)
  })
})

describe('the rules of accepted mutants', () => {
  const accepted = (source: string) =>
    findMutants('src/a.ts', source).filter((mutant) => findRule(ACCEPTED, mutant) !== undefined)
  const edits = (source: string) => accepted(source).map(({ edit }) => edit)

  it('accept the neutral default of a value that is never absent, on any line', () => {
    assert.deepEqual(edits(`const url = request.url ?? ''`), [`const url = request.url ?? '« → ~»'`])
    assert.deepEqual(edits(`const [name = '', rest] = split(text)`), [`const [name = '« → ~»', rest] = split(text)`])
    assert.deepEqual(edits(`const total = Number(row?.total ?? 0)`), [`const total = Number(row?.total ?? «0 → 1»)`])
  })
  it('accept no other default and no constant', () => {
    for (const source of [
      `const retries = options.retries ?? 5`,
      `const kind = name ?? 'exec'`,
      'let count = 0',
      'const x = f(1)',
    ])
      assert.deepEqual(edits(source), [], source)
  })
  it('accept the last millisecond of a time, and no other comparison of a statement', () => {
    const source = 'const x = `select id from messages where ready_at < now_ms() and n > $1`'
    assert.deepEqual(
      accepted(source).map(({ change }) => change),
      ['const x = `select id from messages where ready_at <= now_ms() and n > $1`'],
    )
  })
  it('say why, and name patterns that match nothing any more', () => {
    for (const { reason } of ACCEPTED) assert.ok(reason.length > 20, reason)
    const rules = [{ reason: 'gone', below: 'src/', edits: [/«old → /, /«1 → /] }]
    assert.deepEqual(unusedEdits(rules, findMutants('src/a.ts', 'const x = 1')), ['src/ «old → : gone'])
  })
})
