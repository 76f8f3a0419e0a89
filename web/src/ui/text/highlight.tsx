/** Colours code. A lazy chunk: import it only with `import()`. The tree becomes elements, never markup. */
import { common, createLowlight } from 'lowlight'
import type { ReactNode } from 'react'

const lowlight = createLowlight(common)

type LowlightNode = ReturnType<typeof lowlight.highlight>['children'][number]

export function highlight(code: string, language: string): ReactNode {
  if (!lowlight.registered(language)) return code
  return lowlight.highlight(language, code).children.map(render)
}

function render(node: LowlightNode, index: number): ReactNode {
  if (node.type === 'text') return node.value
  if (node.type !== 'element') return null
  const names = (node.properties['className'] ?? []) as readonly string[]
  return (
    <span key={index} className={colourOf(names)}>
      {node.children.map(render)}
    </span>
  )
}

const COLOURS: readonly (readonly [RegExp, string])[] = [
  [/comment|quote|meta/, 'text-faint italic'],
  [/keyword|selector-tag|built_in|literal|tag\b/, 'text-accent'],
  [/string|regexp|addition/, 'text-ok-ink'],
  [/number|symbol|attr|variable|params/, 'text-working'],
  [/deletion/, 'text-needs'],
  [/title|section|name|type/, 'font-[600]'],
]

const colourOf = (names: readonly string[]): string | undefined =>
  COLOURS.find(([pattern]) => names.some((name) => pattern.test(name)))?.[1]
