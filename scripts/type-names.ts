/**
 * Reports every exported type name that two files declare; a part of `npm run check`. When two types share a name, a
 * reader must follow the import to know which one is meant.
 *
 * Invariant: `checkTypeNames` is pure. It reads declarations only, so a re-export is not a second declaration.
 */
import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { readSources } from './layers.ts'

/** One sentence for each name that is declared more than once. `files` maps each path to its text. */
export function checkTypeNames(files: ReadonlyMap<string, string>): string[] {
  const declared = [...files].flatMap(([file, source]) => readTypeNames(file, source).map((name) => ({ name, file })))
  const byName = Map.groupBy(declared, ({ name }) => name)
  return [...byName]
    .filter(([, places]) => places.length > 1)
    .map(([name, places]) => `${name} is exported by ${places.map(({ file }) => file).join(' and ')}: rename one`)
    .sort()
}

function readTypeNames(file: string, source: string): string[] {
  const names: string[] = []
  for (const statement of parseSync(file, source).program.body) {
    if (statement.type !== 'ExportNamedDeclaration') continue
    const { declaration } = statement
    if (declaration?.type === 'TSInterfaceDeclaration') names.push(declaration.id.name)
    if (declaration?.type === 'TSTypeAliasDeclaration') names.push(declaration.id.name)
  }
  return names
}

if (import.meta.main) {
  const problems = checkTypeNames(readSources(posix.join(import.meta.dirname, '..')))
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
}
