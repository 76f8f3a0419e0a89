/**
 * Reads the HTML of a Telegram message the way the real service does, and refuses what it refuses: tags that it does not
 * know, and tags that are not closed in their order. A refusal says where, by byte.
 */

const TAGS = new Set('a b strong i em s strike del u ins tg-spoiler tg-emoji span pre code blockquote'.split(' '))
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' }
/** What is allowed inside code is text alone. */
const CODE = new Set(['code', 'pre'])

export interface TelegramEntity {
  readonly type: string
  readonly offset: number
  readonly length: number
  readonly url?: string
  readonly language?: string
}

export class EntityError extends Error {}

interface OpenTag {
  readonly name: string
  readonly argument: string
  readonly offset: number
}

/** The text as people see it, and its entities in UTF-16 units. Throws `EntityError`. */
export function parseTelegramHtml(html: string): {
  readonly text: string
  readonly entities: readonly TelegramEntity[]
} {
  const open: OpenTag[] = []
  const entities: TelegramEntity[] = []
  let text = ''
  let index = 0
  while (index < html.length) {
    const rest = html.slice(index)
    if (rest.startsWith('<')) {
      const at = Buffer.byteLength(html.slice(0, index))
      const tag = rest.startsWith('</') ? readEndTag(rest, at, open) : readStartTag(rest, at)
      if (rest.startsWith('</')) close(open, entities, text)
      else open.push({ name: tag.name, argument: tag.argument, offset: text.length })
      index += tag.length
      continue
    }
    const [reference, decoded] = readReference(rest)
    text += decoded
    index += reference.length
  }
  const last = open.at(-1)
  if (last) throw new EntityError(`Can't find end tag corresponding to start tag "${last.name}"`)
  return { text, entities }
}

/** A character reference or one character. An unknown reference stays as it is. */
function readReference(rest: string): readonly [source: string, decoded: string] {
  const [, decimal, hex, name] = /^&(?:#(\d{1,7});?|#x([\da-f]{1,6});?|(lt|gt|amp|quot);?)/i.exec(rest) ?? []
  const source = /^&(?:#\d{1,7};?|#x[\da-f]{1,6};?|(?:lt|gt|amp|quot);?)/i.exec(rest)?.[0]
  if (source === undefined) return [rest.charAt(0), rest.charAt(0)]
  if (name !== undefined) return [source, NAMED[name.toLowerCase()] ?? '']
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return code === 0 || code > 0x10ffff ? [rest.charAt(0), rest.charAt(0)] : [source, String.fromCodePoint(code)]
}

function readStartTag(rest: string, at: number): { name: string; argument: string; length: number } {
  const name = /^<([^\s>]*)/.exec(rest)?.[1]?.toLowerCase() ?? ''
  if (!/^<[^\s>]*[\s>]/.test(rest)) throw new EntityError(`Unclosed start tag at byte offset ${at}`)
  if (!TAGS.has(name)) throw new EntityError(`Unsupported start tag "${name}" at byte offset ${at}`)
  let index = name.length + 1
  let argument = ''
  for (;;) {
    index += /^\s*/.exec(rest.slice(index))?.[0].length ?? 0
    if (rest.charAt(index) === '>') break
    const attribute = readAttribute(rest.slice(index), name, at)
    if (ARGUMENTS[name] === attribute.name) argument = attribute.value
    index += attribute.length
  }
  if (name === 'span' && argument !== 'tg-spoiler') {
    throw new EntityError(`Tag "span" must have class "tg-spoiler" at byte offset ${at}`)
  }
  return { name, argument, length: index + 1 }
}

const ARGUMENTS: Readonly<Record<string, string>> = { a: 'href', code: 'class', span: 'class', 'tg-emoji': 'emoji-id' }

function readAttribute(rest: string, tag: string, at: number): { name: string; value: string; length: number } {
  const name = /^[^\s=>]*/.exec(rest)?.[0] ?? ''
  if (rest === '') throw new EntityError(`Unclosed start tag at byte offset ${at}`)
  if (name === '') throw new EntityError(`Empty attribute name in the tag "${tag}" at byte offset ${at}`)
  const equals = /^[^\s=>]*\s*=\s*/.exec(rest)?.[0]
  if (tag === 'blockquote' && name === 'expandable' && equals === undefined)
    return { name, value: '', length: name.length }
  if (equals === undefined) {
    throw new EntityError(`Expected equal sign in declaration of an attribute of the tag "${tag}" at byte offset ${at}`)
  }
  const [quoted, double, single] = /^(?:"([^"]*)"|'([^']*)')/.exec(rest.slice(equals.length)) ?? []
  if (quoted !== undefined)
    return { name, value: decodeAll(double ?? single ?? ''), length: equals.length + quoted.length }
  const token = /^[A-Za-z0-9.-]+(?=[\s>])/.exec(rest.slice(equals.length))?.[0]
  if (token === undefined) throw new EntityError(`Unexpected end of name token at byte offset ${at}`)
  return { name, value: token.toLowerCase(), length: equals.length + token.length }
}

function decodeAll(source: string): string {
  let decoded = ''
  for (let index = 0; index < source.length; ) {
    const [reference, character] = readReference(source.slice(index))
    decoded += character
    index += reference.length
  }
  return decoded
}

function readEndTag(
  rest: string,
  at: number,
  open: readonly OpenTag[],
): { name: string; argument: string; length: number } {
  const expected = open.at(-1)?.name
  if (expected === undefined) throw new EntityError(`Unexpected end tag at byte offset ${at}`)
  const [source, name = ''] = /^<\/([^\s>]*)\s*>/.exec(rest) ?? []
  if (source === undefined) throw new EntityError(`Unclosed end tag at byte offset ${at}`)
  if (name !== '' && name.toLowerCase() !== expected) {
    throw new EntityError(`Unmatched end tag at byte offset ${at}, expected "</${expected}>", found "</${name}>"`)
  }
  return { name, argument: '', length: source.length }
}

function close(open: OpenTag[], entities: TelegramEntity[], text: string): void {
  const { name, argument, offset } = open.pop() ?? { name: '', argument: '', offset: 0 }
  const length = text.length - offset
  // The service drops empty entities, formatting inside code, and links without a URL.
  if (length === 0 || open.some((tag) => CODE.has(tag.name) && !(tag.name === 'pre' && name === 'code'))) return
  if (name === 'a' && !/^(https?|tg|mailto):/i.test(argument)) return
  const language = argument.startsWith('language-') ? argument.slice('language-'.length) : undefined
  entities.push({
    type: name,
    offset,
    length,
    ...(name === 'a' && { url: argument }),
    ...(language !== undefined && { language }),
  })
}
