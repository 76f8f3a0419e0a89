/**
 * Splits Markdown into messages of a chat service. It cuts between blocks, then between lines, then between words. A code
 * fence that fits into one message stays whole; a longer one is closed at the end of a message and opened again in the
 * next, so that each message renders alone.
 *
 * Invariant: no message is longer than the limit, and each message closes every fence that it opens.
 */
import { isFenceEnd, isFenceOpener, type MarkdownBlock, readBlocks } from './markdown-blocks.ts'

/** A smaller limit leaves no room for the longest fence lines, which a repaired fence repeats in every message. */
const LIMIT_CHARS_MIN = 500
/** A cut looks for a space in this last part of a line before it cuts inside a word. */
const WORD_SEARCH_SHARE = 0.4
/** A message with less room than this share does not begin a block that must be cut anyway. */
const ROOM_SHARE_MIN = 0.25
/** Enough characters to recognise a fence line; the rest of a long line does not matter. */
const FENCE_LINE_CHARS_MAX = 300

/** The messages, in order. Blank lines at the borders of a message are dropped; a blank text has no message. */
export function splitMarkdown(markdown: string, limitChars: number): string[] {
  if (limitChars < LIMIT_CHARS_MIN) throw new Error(`a message needs room for ${LIMIT_CHARS_MIN} characters`)
  const message = new MessageBuilder(limitChars)
  for (const block of readBlocks(markdown.replaceAll(/\r\n?/g, '\n').toWellFormed())) addBlock(message, block)
  message.flush()
  return message.parts
}

/**
 * The message that is being filled, and the full ones before it. It counts as it goes: to look at the whole message for
 * each line would take 100 ms for 16 KB of short lines.
 */
class MessageBuilder {
  readonly parts: string[] = []
  readonly limitChars: number
  /** Does not begin with a blank line. */
  #current = ''
  /** Where the last character of `#current` ends that is no blank. */
  #contentEnd = 0
  #lastHeading: string | undefined

  constructor(limitChars: number) {
    this.limitChars = limitChars
  }

  get room(): number {
    return this.limitChars - this.#current.length - 1
  }

  get isNarrow(): boolean {
    return this.room < this.limitChars * ROOM_SHARE_MIN
  }

  fits(text: string): boolean {
    if (this.#contentEnd === 0) return withoutBlankEdges(this.#current + text).length <= this.limitChars
    const content = text.trimEnd()
    return (content === '' ? this.#contentEnd : this.#current.length + content.length) <= this.limitChars
  }

  add(text: string): void {
    this.#append(text)
    this.#lastHeading = undefined
  }

  addHeading(text: string): void {
    this.#lastHeading = this.#current === '' ? undefined : text
    this.#append(text)
  }

  /** Ends the message. A heading at its end moves to the next message, together with the text that it announces. */
  flushBefore(text: string): void {
    const heading = this.#lastHeading
    const moves = heading !== undefined && withoutBlankEdges(heading + text).length <= this.limitChars
    if (moves) this.#current = this.#current.slice(0, -heading.length)
    this.flush()
    if (moves) this.#append(heading)
  }

  flush(): void {
    const part = this.#current.trimEnd()
    if (part !== '') this.parts.push(part)
    this.#current = ''
    this.#contentEnd = 0
    this.#lastHeading = undefined
  }

  #append(text: string): void {
    const content = text.trimEnd()
    if (this.#contentEnd === 0) {
      this.#current = withoutBlankStart(this.#current + text)
      this.#contentEnd = this.#current.trimEnd().length
      return
    }
    if (content !== '') this.#contentEnd = this.#current.length + content.length
    this.#current += text
  }
}

function addBlock(message: MessageBuilder, block: MarkdownBlock): void {
  const text = block.type === 'fence' ? block.opener + block.body.join('') + closing(block) : block.lines.join('')
  if (!message.fits(text)) {
    if (withoutBlankEdges(text).length > message.limitChars) {
      addInPieces(message, block)
      return
    }
    message.flushBefore(text)
  }
  if (block.type === 'text' && block.isHeading) message.addHeading(text)
  else message.add(text)
}

function addInPieces(message: MessageBuilder, block: MarkdownBlock): void {
  if (block.type === 'fence') addFence(message, block)
  else for (const line of block.lines) addLine(message, line)
}

function addLine(message: MessageBuilder, line: string): void {
  if (!message.fits(line) && (withoutBlankEdges(line).length <= message.limitChars || message.isNarrow)) message.flush()
  let rest = line
  while (!message.fits(rest)) {
    const at = cutPosition(rest, message.room, isFenceOpener)
    message.add(rest.slice(0, at))
    message.flush()
    rest = rest.slice(at)
  }
  message.add(rest)
}

/** Each message gets the fence line, as many lines of code as fit, and a closing line. */
function addFence(message: MessageBuilder, block: MarkdownBlock & { readonly type: 'fence' }): void {
  const { fence } = block
  const close = `${fence.prefix}${fence.marker}\n`
  const reopen = `${fence.prefix}${fence.marker}${fence.info}\n`
  const next = () => {
    message.add(close)
    message.flush()
    message.add(reopen)
  }
  if (message.isNarrow || !message.fits(block.opener + close)) message.flush()
  message.add(block.opener)
  for (const line of block.body) {
    const fitsAlone = reopen.length + line.length + close.length <= message.limitChars
    if (!message.fits(line + close) && (fitsAlone || message.isNarrow)) next()
    let rest = line
    while (!message.fits(rest + close)) {
      const at = cutPosition(rest, message.room - close.length - 1, (text) => isFenceEnd(text, fence))
      message.add(`${rest.slice(0, at)}\n`)
      // Without its quote marks the rest of the line would end the quote, and the fence with it.
      rest = (fence.prefix.includes('>') ? fence.prefix : '') + rest.slice(at)
      next()
    }
    message.add(rest)
  }
  message.add(closing(block))
}

/** The closing line of a fence; an unclosed one is repaired. */
function closing({ fence, body }: MarkdownBlock & { readonly type: 'fence' }): string {
  const isLineOpen = body.length > 0 && !body.at(-1)?.endsWith('\n')
  return `${isLineOpen ? '\n' : ''}${fence.prefix}${fence.marker}\n`
}

/**
 * Where to cut a line that is too long: after a space, otherwise at the limit. Neither side of the cut may be a fence line,
 * which would swallow the text after it, and no surrogate pair is split.
 */
function cutPosition(line: string, room: number, isFenceLine: (text: string) => boolean): number {
  const space = line.lastIndexOf(' ', room - 1)
  let at = space >= room * (1 - WORD_SEARCH_SHARE) ? space + 1 : Math.min(room, line.length - 1)
  const isBad = () => {
    const tail = line.slice(at, at + FENCE_LINE_CHARS_MAX)
    const head = at <= FENCE_LINE_CHARS_MAX ? line.slice(0, at) : ''
    return isFenceLine(tail) || isFenceLine(head) || isLowSurrogate(line.charCodeAt(at))
  }
  while (at > 1 && isBad()) at--
  return at
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

function withoutBlankStart(text: string): string {
  return text.replace(/^(?:[ \t]*\n)+/, '')
}

function withoutBlankEdges(text: string): string {
  return withoutBlankStart(text).trimEnd()
}
