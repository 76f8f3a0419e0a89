/**
 * Markdown as elements. The parser's tokens become elements one by one: HTML in the text is shown as text, and a link
 * that is not http, https or mailto is shown without a link. So no text of an agent can add markup to the page.
 * Markdown beyond the limits of `src/markdown.ts` is shown as plain text.
 */
import { Fragment, memo, type ReactNode } from 'react'
import { divideMarkdown, type MarkdownPart, parseMarkdown, type Token, type Tokens } from '../../../../src/markdown.ts'
import { CodeBlock } from './code-block.tsx'
import { decodeEntities } from './entities.ts'
import { safeLink, settleStreaming } from './markdown-text.ts'
import { PlainText } from './plain-text.tsx'

export interface MarkdownProps {
  readonly text: string
  /** The text still grows. */
  readonly isStreaming?: boolean
}

export const Markdown = memo(function MarkdownText({ text, isStreaming = false }: MarkdownProps) {
  const parts = divideMarkdown(text)
  return (
    <div className="min-w-0 break-words text-body max-md:text-[15px] max-md:leading-[22px] [&>*:first-child]:mt-0 [&>*:last-child]:mb-0">
      {parts.map((part, index) => (
        <Part key={index} part={part} isStreaming={isStreaming && index >= parts.length - 1} />
      ))}
    </div>
  )
})

interface PartProps {
  readonly part: MarkdownPart
  readonly isStreaming: boolean
}

/** While a long answer grows only its last part is parsed again. */
const Part = memo(
  MarkdownPartText,
  (before, after) =>
    before.part.text === after.part.text &&
    before.part.isPlain === after.part.isPlain &&
    before.isStreaming === after.isStreaming,
)

function MarkdownPartText({ part: { text, isPlain }, isStreaming }: PartProps): ReactNode {
  const tokens = isPlain ? undefined : parseMarkdown(isStreaming ? settleStreaming(text) : text)
  if (tokens === undefined) return <PlainText text={text} />
  return tokens.map((token, index) => (
    <Block key={index} token={token} isStreaming={isStreaming && index >= tokens.length - 1} />
  ))
}

const HEADING_LOOKS = ['text-dialog', 'text-title', 'text-body', 'text-body', 'text-second', 'text-second']

const HEADING_LEVELS = ['h3', 'h4'] as const

/** One level lower than written: the page has headings of its own. */
function Heading({ depth, children }: { readonly depth: number; readonly children: ReactNode }) {
  const look = `mt-4 mb-2 font-[650] ${HEADING_LOOKS[depth - 1]}`
  const Level = HEADING_LEVELS[depth - 1] ?? 'h5'
  return (
    <Level dir="auto" className={look}>
      {children}
    </Level>
  )
}

interface BlockProps {
  readonly token: Token
  readonly isStreaming: boolean
}

/** While an answer grows only its last block changes. */
const Block = memo(
  MarkdownBlock,
  (before, after) => before.token.raw === after.token.raw && before.isStreaming === after.isStreaming,
)

function MarkdownBlock({ token, isStreaming }: BlockProps): ReactNode {
  switch (token.type) {
    case 'space':
      return null
    case 'heading':
      return <Heading depth={token['depth']}>{inline(token['tokens'])}</Heading>
    case 'paragraph':
      return (
        <p dir="auto" className="my-2">
          {inline(token['tokens'])}
        </p>
      )
    case 'code':
      return <CodeBlock code={token['text']} language={token['lang']?.split(/\s/)[0]} isStreaming={isStreaming} />
    case 'blockquote':
      return (
        <blockquote dir="auto" className="my-2 border-line border-s-2 ps-3 text-soft">
          {blocks(token['tokens'])}
        </blockquote>
      )
    case 'list':
      return <List list={token as Tokens.List} />
    case 'table':
      return <Table table={token as Tokens.Table} />
    case 'hr':
      return <hr className="my-4 border-line" />
    case 'text':
      return <>{'tokens' in token ? inline(token.tokens) : lines(token.raw)}</>
    case 'checkbox':
      return <Checkbox isChecked={token['checked'] === true} />
    default:
      if (LINE_BREAK.test(token.raw.trim())) return <br />
      return (
        <p dir="auto" className="my-2 whitespace-pre-wrap">
          {token.raw}
        </p>
      )
  }
}

const blocks = (tokens: readonly Token[] | undefined): ReactNode =>
  tokens?.map((token, index) => <Block key={`${index}-${token.type}`} token={token} isStreaming={false} />)

function List({ list }: { readonly list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index} className={item.task ? 'list-none' : undefined}>
      {blocks(item.tokens)}
    </li>
  ))
  const look = 'my-2 flex flex-col gap-1 ps-5 [&>li>p]:my-0'
  if (!list.ordered) {
    return (
      <ul dir="auto" className={`${look} list-disc`}>
        {items}
      </ul>
    )
  }
  return (
    <ol dir="auto" start={Number.isInteger(list.start) ? Number(list.start) : 1} className={`${look} list-decimal`}>
      {items}
    </ol>
  )
}

/** A task list is read only. The box of a task stands in the place of the mark, so its lines begin below each other. */
const Checkbox = ({ isChecked }: { readonly isChecked: boolean }) => (
  <input
    type="checkbox"
    disabled
    checked={isChecked}
    aria-label={isChecked ? 'done' : 'not done'}
    className="-ms-5 me-1.75 size-3.25 translate-y-px accent-accent"
  />
)

const ALIGNED = { left: 'text-left', center: 'text-center', right: 'text-right tabular-nums' } as const

function Table({ table }: { readonly table: Tokens.Table }) {
  const cellLook = (index: number): string => {
    const align = table.align[index]
    return `border-line border-b px-2 py-1 ${align ? ALIGNED[align] : 'text-start'}`
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, and must do so by keyboard.
    <section aria-label="Table" tabIndex={0} className="focus-inside my-2 overflow-x-auto">
      <table dir="auto" className="border-collapse text-second">
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index} className={`font-[600] ${cellLook(index)}`}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index} className={`align-top ${cellLook(index)}`}>
                  {inline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

const inline = (tokens: readonly Token[] | undefined): ReactNode =>
  tokens?.map((token, index) => <Fragment key={`${index}-${token.type}`}>{inlineToken(token)}</Fragment>)

/** A text keeps its lines, as its writer sees them. The parser has read some entities in `text`, and none in `raw`. */
function lines(text: string): ReactNode {
  const [first = '', ...rest] = text.split('\n')
  if (rest.length === 0) return decodeEntities(first)
  return [
    decodeEntities(first),
    ...rest.map((line, index) => (
      <Fragment key={index}>
        <br />
        {decodeEntities(line)}
      </Fragment>
    )),
  ]
}

const LINE_BREAK = /^<br ?\/?>$/i

function inlineToken(token: Token): ReactNode {
  switch (token.type) {
    case 'text':
      return 'tokens' in token && token.tokens ? inline(token.tokens) : lines(token.raw)
    case 'escape':
      return token['text']
    case 'strong':
      return <strong className="font-[650]">{inline(token['tokens'])}</strong>
    case 'em':
      return <em>{inline(token['tokens'])}</em>
    case 'del':
      return <del>{inline(token['tokens'])}</del>
    case 'codespan':
      return <code className="rounded-tag bg-raised px-0.5 font-mono text-[0.92em]">{token['text']}</code>
    case 'br':
      return <br />
    case 'checkbox':
      return <Checkbox isChecked={token['checked'] === true} />
    case 'html':
      // The one tag that tables need: a line of a cell cannot end otherwise.
      return LINE_BREAK.test(token.raw) ? <br /> : token.raw
    case 'link':
      return link(token as Tokens.Link)
    case 'image':
      // An image of another host would be a request to the outside, so only its text is shown.
      return link({ href: token['href'], text: decodeEntities(token['text'] || token['href']) })
    default:
      return token.raw
  }
}

function link({ href, text, tokens }: { href: string; text: string; tokens?: Token[] }): ReactNode {
  const url = safeLink(decodeEntities(href))
  const content = tokens ? inline(tokens) : text
  if (url === undefined) return content
  return (
    <a href={url} target="_blank" rel="noreferrer noopener" className="text-accent underline underline-offset-2">
      {content}
    </a>
  )
}
