/** Reads the HTML of a Matrix message, and refuses what the specification does not allow: other tags, wrong nesting. */

const TAGS = new Set(
  (
    'del h1 h2 h3 h4 h5 h6 blockquote p a ul ol sup sub li b i u strong em s code hr br div table thead tbody tr th td ' +
    'caption pre span img details summary'
  ).split(' '),
)
const ALONE = new Set(['hr', 'br', 'img'])
const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ['href', 'target'],
  ol: ['start'],
  code: ['class'],
}
const DEPTH_MAX = 100
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' }

/** The text as people see it. Throws for HTML that is not allowed. */
export function parseMatrixHtml(html: string): string {
  const open: string[] = []
  let text = ''
  for (const piece of html.match(/<[^>]*>|[^<]+|</g) ?? []) {
    if (!piece.startsWith('<')) {
      text += readText(piece)
      continue
    }
    const [, slash, name = '', rest = ''] = /^<(\/?)([a-z0-9]+)((?: [a-z]+="[^"<>]*")*)>$/.exec(piece) ?? []
    if (!TAGS.has(name)) throw new Error(`the tag ${piece.slice(0, 40)} is not allowed`)
    if (slash === '/') {
      const expected = open.pop()
      if (expected !== name) throw new Error(`</${name}> closes <${expected}>`)
      continue
    }
    judgeAttributes(name, rest)
    if (name === 'a' && open.includes('a')) throw new Error('a link in a link')
    if (name === 'br') text += '\n'
    if (!ALONE.has(name)) open.push(name)
    if (open.length > DEPTH_MAX) throw new Error('nested too deep')
  }
  if (open.length > 0) throw new Error(`<${open.at(-1)}> is not closed`)
  return text
}

function judgeAttributes(name: string, rest: string): void {
  for (const [, attribute = '', value = ''] of rest.matchAll(/ ([a-z]+)="([^"]*)"/g)) {
    if (!ATTRIBUTES[name]?.includes(attribute)) throw new Error(`<${name}> has no attribute ${attribute}`)
    if (attribute === 'href' && !/^(?:https?|ftp|mailto|magnet):/i.test(readText(value)))
      throw new Error(`the address ${value} is not allowed`)
    if (attribute === 'class' && !value.startsWith('language-')) throw new Error(`the class ${value} is not allowed`)
  }
}

function readText(text: string): string {
  return text.replaceAll(/&([a-z]+;)?/g, (entity, name: string | undefined) => {
    const character = NAMED[(name ?? '').slice(0, -1)]
    if (character === undefined) throw new Error(`${entity} is no entity`)
    return character
  })
}
