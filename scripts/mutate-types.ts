/**
 * Leaves out mutants that do not compile: `npm run check` refuses them, so no test has to notice them. One run of the
 * compiler checks many mutants, at most one in each file. A mutant whose error appears only in another file is kept.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyMutant, type Mutant } from './mutants.ts'
import { copyRepository } from './mutate-copy.ts'

/** A statement that is left out may leave an import without a use. That is no error of types. */
const OPTIONS = ['--noEmit', '--noUnusedLocals', 'false', '--noUnusedParameters', 'false', '--allowUnreachableCode']
/** TS1313, an `if` without a body, is how a statement is left out. */
const ERROR = /^(\S+?)\(\d+,\d+\): error TS(?!1313:)/gm

export function withoutTypeErrors(root: string, mutants: readonly Mutant[]): Mutant[] {
  const copy = copyRepository(root)
  try {
    const refused = new Set<Mutant>()
    const byFile = Map.groupBy(mutants, ({ file }) => file)
    const rounds = Math.max(0, ...[...byFile.values()].map((all) => all.length))
    for (let round = 0; round < rounds; round++) {
      const chosen = [...byFile.values()].flatMap((all) => all[round] ?? [])
      const failed = filesWithErrors(copy, chosen)
      for (const mutant of chosen) if (failed.has(mutant.file)) refused.add(mutant)
    }
    return mutants.filter((mutant) => !refused.has(mutant))
  } finally {
    rmSync(copy, { recursive: true, force: true, maxRetries: 5 })
  }
}

function filesWithErrors(copy: string, mutants: readonly Mutant[]): Set<string> {
  const sources = mutants.map(({ file }) => readFileSync(join(copy, file), 'utf8'))
  for (const [index, mutant] of mutants.entries())
    writeFileSync(join(copy, mutant.file), applyMutant(sources[index] ?? '', mutant))
  try {
    const tsc = join(copy, 'node_modules', '.bin', 'tsc')
    const { stdout } = spawnSync(tsc, ['-p', 'tsconfig.json', ...OPTIONS, 'true', '--pretty', 'false'], {
      ...{ cwd: copy, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
    })
    return new Set([...stdout.matchAll(ERROR)].map(([, file = '']) => file))
  } finally {
    for (const [index, { file }] of mutants.entries()) writeFileSync(join(copy, file), sources[index] ?? '')
  }
}
