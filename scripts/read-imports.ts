/**
 * Lists the imports of a source file: static and dynamic imports, `export ... from`, and type imports. Parses the source
 * instead of searching it, so that a comment or a string that looks like an import is not one. `layers.ts` checks them.
 */
import { parseSync, Visitor } from 'oxc-parser'

export interface Import {
  /** The text between the quotes; undefined when it is computed at run time. */
  readonly specifier: string | undefined
  readonly line: number
  /** Nothing of it exists at run time. */
  readonly isType: boolean
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
  const add = (expression: Expression | null | undefined, isType = false) => {
    if (!expression) return
    imports.push({ specifier: constantText(expression), line: lineAt(source, expression.start), isType })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source, node.importKind === 'type'),
    ExportNamedDeclaration: (node) => add(node.source, node.exportKind === 'type'),
    ExportAllDeclaration: (node) => add(node.source, node.exportKind === 'type'),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source, true),
    TSExternalModuleReference: (node) => add(node.expression),
  }).visit(parsed.program)
  return imports
}

/** The text of a string literal or of a template without placeholders; undefined for anything else. */
function constantText(expression: Expression): string | undefined {
  if ('value' in expression && typeof expression.value === 'string') return expression.value
  if (!('quasis' in expression) || !Array.isArray(expression.quasis) || expression.quasis.length !== 1) return
  return expression.quasis[0].value.cooked
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length
}
