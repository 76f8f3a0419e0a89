/**
 * Leaves out mutants that do not compile: `npm run check` refuses them, so no test has to notice them. Each mutant is
 * written beside its file under a name of its own, so that one run of the compiler checks hundreds of them. Nothing
 * imports such a file: a mutant whose error would appear only in another file is kept.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyMutant, type Mutant } from './mutants.ts'
import { copyRepository } from './mutate-copy.ts'

/** A statement that is left out may leave an import without a use. That is no error of types. */
const OPTIONS = ['--noEmit', '--noUnusedLocals', 'false', '--noUnusedParameters', 'false', '--allowUnreachableCode']
/** TS1313, an `if` without a body, is how a statement is left out. */
const ERROR = /\.mutant-(\d+)\.ts\(\d+,\d+\): error TS(?!1313:)/g
/** More files at once need gigabytes of memory. */
const FILES_MAX = 1000

export function withoutTypeErrors(root: string, mutants: readonly Mutant[]): Mutant[] {
  const copy = copyRepository(root)
  try {
    const kept: Mutant[] = []
    for (let start = 0; start < mutants.length; start += FILES_MAX)
      kept.push(...compiling(copy, mutants.slice(start, start + FILES_MAX)))
    return kept
  } finally {
    rmSync(copy, { recursive: true, force: true, maxRetries: 5 })
  }
}

function compiling(copy: string, mutants: readonly Mutant[]): Mutant[] {
  const paths = mutants.map((mutant, index) => {
    const source = readFileSync(join(copy, mutant.file), 'utf8')
    const path = join(copy, mutant.file.replace(/\.ts$/, `.mutant-${index}.ts`))
    writeFileSync(path, applyMutant(source, mutant))
    return path
  })
  const tsc = join(copy, 'node_modules', '.bin', 'tsc')
  const { stdout, error } = spawnSync(tsc, ['-p', 'tsconfig.json', ...OPTIONS, 'true', '--pretty', 'false'], {
    cwd: copy,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  })
  if (error) throw error
  for (const path of paths) rmSync(path)
  const refused = new Set([...stdout.matchAll(ERROR)].map(([, index]) => Number(index)))
  return mutants.filter((_, index) => !refused.has(index))
}
