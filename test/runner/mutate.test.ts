/** The mutation runner on a planted repository: it must tell a mutant that a test notices from one that none notices. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findMutants } from '../../scripts/mutate/mutants.ts'
import { runMutants } from '../../scripts/mutate/mutate.ts'
import { withoutTypeErrors } from '../../scripts/mutate/mutate-types.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const FILE = 'src/limit.ts'
const SOURCE = `export function isOver(count: number): boolean {
  return count > 50
}
export async function wait(): Promise<void> {
  const timer = setInterval(() => undefined, 60000)
  clearInterval(timer)
}
`
const TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOver, wait } from './limit.ts'
test('over', async () => {
  await wait()
  assert.equal(isOver(49), false)
  assert.equal(isOver(51), true)
})
`

function plant(t: TestContext, testSource: string): string {
  const root = temporaryDir(t)
  for (const folder of ['src', 'node_modules']) mkdirSync(join(root, folder))
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(root, FILE), SOURCE)
  writeFileSync(join(root, 'src/limit.test.ts'), testSource)
  return root
}

const run = (root: string, changes: string[], options: Partial<Parameters<typeof runMutants>[0]> = {}) => {
  const mutants = findMutants(FILE, SOURCE).filter(({ change }) => changes.includes(change))
  assert.equal(mutants.length, changes.length)
  return runMutants({ root, mutants, workers: 2, signal: new AbortController().signal, extraMs: 3000, ...options })
}

const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`molecule-mutate-${process.pid}-`))

test('a mutant that a test notices is killed, another survives, and the source stays as it was', async (t) => {
  const root = plant(t, TEST)
  const verdicts = await run(root, ['return count > 5', 'return ((count) >= (50))'])
  const killedBy = Object.fromEntries(verdicts.map((verdict) => [verdict.mutant.change, verdict.killedBy]))
  assert.deepEqual(killedBy, { 'return count > 5': 'src/limit.test.ts: over', 'return ((count) >= (50))': undefined })
  assert.equal(readFileSync(join(root, FILE), 'utf8'), SOURCE)
  assert.deepEqual(copies(), [])
})

test('a mutant that does not compile is left out, one that only leaves out a statement is not', (t) => {
  const root = temporaryDir(t)
  mkdirSync(join(root, 'src'))
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(root, 'node_modules'))
  const compilerOptions = { strict: true, module: 'nodenext', allowImportingTsExtensions: true, noUnusedLocals: true }
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  const source = `import { log } from './log.ts'
export function judge(count: number): 'low' | 'high' {
  if (count < 0) log(count)
  return count > 50 ? 'high' : 'low'
}
`
  writeFileSync(join(root, 'src/log.ts'), 'export const log = (_value: number): void => undefined\n')
  writeFileSync(join(root, FILE), source)
  const changes = withoutTypeErrors(root, findMutants(FILE, source)).map(({ change }) => change)
  assert.ok(changes.includes('if (count < 0) ;'), changes.join('\n'))
  assert.ok(changes.some((change) => change.includes('>=')))
  assert.deepEqual(
    changes.filter((change) => change.includes('~')),
    [],
  )
})

test('a mutant with which the tests do not end is killed', async (t) => {
  const [verdict] = await run(plant(t, TEST), [';'])
  assert.equal(verdict?.killedBy, 'src/limit.test.ts: it did not end')
})

test('a test file that fails on the unchanged source is named and kills no mutant', async (t) => {
  const lines: string[] = []
  const [verdict] = await run(plant(t, TEST.replace('51', '50')), ['return count > 5'], {
    report: (line) => lines.push(line),
  })
  assert.equal(verdict?.killedBy, undefined)
  assert.match(lines.join('\n'), /src\/limit.test.ts fails on the unchanged source/)
  assert.deepEqual(copies(), [])
})

test('a test file that fails only once is measured again and counts', async (t) => {
  const root = plant(t, '')
  const marker = join(root, 'failed-once')
  const failsOnce = `if (!existsSync(${JSON.stringify(marker)})) {
  writeFileSync(${JSON.stringify(marker)}, '')
  throw new Error('a busy machine')
}
`
  writeFileSync(
    join(root, 'src/limit.test.ts'),
    `import { existsSync, writeFileSync } from 'node:fs'\n${TEST}${failsOnce}`,
  )
  const [verdict] = await run(root, ['return count > 5'])
  assert.equal(verdict?.killedBy, 'src/limit.test.ts: over')
})

test('a mutant that no test reaches survives without a run', async (t) => {
  const root = plant(t, TEST.replace('await wait()', ''))
  const [verdict] = await run(root, [';'])
  assert.deepEqual([verdict?.killedBy, verdict?.ms], [undefined, 0])
})

test('a test that has changed since it was measured is measured again', async (t) => {
  const root = plant(t, TEST.replace('await wait()', ''))
  await run(root, [';'])
  writeFileSync(join(root, 'src/limit.test.ts'), TEST)
  const [verdict] = await run(root, [';'])
  assert.equal(verdict?.killedBy, 'src/limit.test.ts: it did not end')
})

test('a kill is kept until the source or the test changes, a survivor is judged again', async (t) => {
  const root = plant(t, TEST)
  const changes = ['return count > 5', 'return ((count) >= (50))']
  const judged = async () => {
    const verdicts = await run(root, changes)
    return Object.fromEntries(verdicts.map(({ mutant, killedBy, ms }) => [mutant.change, [killedBy, ms > 0]]))
  }
  await run(root, changes)
  const kept = { [changes[0] ?? '']: ['src/limit.test.ts: over', false], [changes[1] ?? '']: [undefined, true] }
  assert.deepEqual(await judged(), kept)
  writeFileSync(join(root, 'src/limit.test.ts'), TEST.replace('49', '2'))
  assert.deepEqual(await judged(), { [changes[0] ?? '']: [undefined, true], [changes[1] ?? '']: [undefined, true] })
})

test('a run that hung is no kept kill', async (t) => {
  const root = plant(t, TEST)
  await run(root, [';'])
  const [verdict] = await run(root, [';'])
  assert.ok((verdict?.ms ?? 0) > 0)
})

test('only the named test files judge, also when another one has killed the mutant before', async (t) => {
  const root = plant(t, TEST)
  assert.equal((await run(root, ['return count > 5']))[0]?.killedBy, 'src/limit.test.ts: over')
  writeFileSync(join(root, 'src/other.test.ts'), TEST.replace('49', '2'))
  const [verdict] = await run(root, ['return count > 5'], { tests: ['src/other.test.ts'] })
  assert.equal(verdict?.killedBy, undefined)
})

test('an aborted run ends without a verdict', async (t) => {
  assert.deepEqual(await run(plant(t, TEST), ['return count > 5'], { signal: AbortSignal.abort() }), [])
  assert.deepEqual(copies(), [])
})
