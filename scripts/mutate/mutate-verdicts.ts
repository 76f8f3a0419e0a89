/**
 * The kills of earlier runs. A killed mutant is not judged again until its file, or a test file of the run that killed it,
 * changes. A survivor, and a mutant that only made a run hang, is judged again each time. Kills are kept in
 * `node_modules/.cache/molecule/kills`; delete that folder to judge all again.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { applyMutant, type Mutant } from './mutants.ts'

interface Kill {
  readonly killedBy: string
  /** The test files that ran in one process when one of their tests failed, each with the hash of its content. */
  readonly tests: Readonly<Record<string, string>>
}

const hash = (text: string) => createHash('sha256').update(text).digest('base64url')
const read = (root: string, file: string) => readFileSync(join(root, file), 'utf8')

/** The name has the hash of the whole changed file, so that another change of the file makes it another mutant. */
const killFile = (root: string, mutant: Mutant) => {
  const name = hash(`${mutant.file}\n${applyMutant(read(root, mutant.file), mutant)}`)
  return join(root, 'node_modules', '.cache', 'molecule', 'kills', `${name}.json`)
}

/** The test that killed this mutant, if that still holds. */
export function readKill(root: string, mutant: Mutant): string | undefined {
  const path = killFile(root, mutant)
  if (!existsSync(path)) return undefined
  const { killedBy, tests } = JSON.parse(readFileSync(path, 'utf8')) as Kill
  const isSame = ([test, known]: [string, string]) => existsSync(join(root, test)) && hash(read(root, test)) === known
  return Object.entries(tests).every(isSame) ? killedBy : undefined
}

export function writeKill(root: string, mutant: Mutant, kill: { killedBy: string; tests: readonly string[] }): void {
  const path = killFile(root, mutant)
  const tests = Object.fromEntries(kill.tests.map((test) => [test, hash(read(root, test))]))
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ killedBy: kill.killedBy, tests } satisfies Kill))
}
