/**
 * Lists every place where a source file names another: static and dynamic imports, `export ... from`, and imports
 * that are only types. Found by parsing, not by matching text, so that a comment or a string which looks like an
 * import is none. `layers.ts` judges what is found here.
 */
import { parseSync, Visitor } from 'oxc-parser'

export interface Import {
  /** What stands between the quotes; undefined when it is computed, so that nobody can know it by reading. */
  readonly specifier: string | undefined
  readonly line: number
}

interface Expression {
  readonly type: string
  readonly start: number
}

/** The imports of one file in order of appearance. Throws a SyntaxError for a file that does not parse. */
export function readImports(file: string, source: string): Import[] {
  const parsed = parseSync(file, source)
  const error = parsed.errors[0]
  if (error) throw new SyntaxError(error.message)

  const imports: Import[] = []
  const add = (expression: Expression | null | undefined) => {
    if (!expression) return
    imports.push({ specifier: constantText(expression), line: lineAt(source, expression.start) })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
    TSExternalModuleReference: (node) => add(node.expression),
  }).visit(parsed.program)
  return imports
}

/** The text of a string literal, or of a template without a hole; undefined for anything that is worked out later. */
function constantText(expression: Expression): string | undefined {
  if ('value' in expression && typeof expression.value === 'string') return expression.value
  if (!('quasis' in expression) || !Array.isArray(expression.quasis) || expression.quasis.length !== 1) return
  return expression.quasis[0].value.cooked
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length
}
