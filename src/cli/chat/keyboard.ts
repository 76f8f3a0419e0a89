/**
 * The lines that a user types in a chat, in order, one per call. The line editor shows what is typed only while a prompt is
 * there: a line that is typed during a turn would otherwise run into the answer. What was typed by then stays, and the next
 * prompt shows it.
 */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { createWakeUp } from '../../wait.ts'
import { createPastedInput, type ExpandedLine, PASTE_MODE_OFF, PASTE_MODE_ON } from './pasted-input.ts'

export interface TypedLine {
  readonly line: string
  /** False: it was typed without a prompt, so the screen does not show it yet. */
  readonly isShown: boolean
}

export interface ChatKeyboard {
  /** The next line; undefined when the signal aborts first, or when input has ended. */
  next(prompt: string, signal?: AbortSignal): Promise<TypedLine | undefined>
  /** Like `next`, but ignores what was typed earlier: an answer must not be older than its question. */
  nextFresh(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** A line with the texts of its pastes, and the files that were dropped into it. */
  expand(line: string): ExpandedLine
  /** The unfinished line. */
  draft(): string
  /** Typed lines that were not taken yet. */
  linesWaiting(): number
  /** Gives up the unfinished line at the prompt for an empty one; false when there is none. */
  dropDraft(): boolean
  /** Writes whole lines above the prompt and what is typed there; false when no prompt is shown. */
  writeAbovePrompt(text: string): boolean
  leave(): void
  /** Aborts when the user leaves. */
  readonly leaving: AbortSignal
}

export interface ChatKeyboardOptions {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  /** Lines to recall, the newest first. */
  readonly history: string[]
  /** A terminal that can do nothing but print lines gets no control sequences. */
  readonly isDumb: boolean
  /** Takes a line that was typed while no prompt was there; true = it needs no further handling. */
  readonly takeDuringTurn: (line: string) => boolean
  readonly onInterrupt: () => void
  readonly onKey: () => void
  readonly onPasteTooLong: (charactersMax: number) => void
}

/** Puts the terminal into raw mode at once: a Ctrl-D typed in line mode would be lost. `leave` restores it. */
export function openChatKeyboard(options: ChatKeyboardOptions): ChatKeyboard {
  const { stdin, stdout, isDumb, history } = options
  const input = createPastedInput({ onTooLong: options.onPasteTooLong })
  const output = createQuietableOutput(stdout)
  Object.assign(input.stream, { setRawMode: (mode: boolean) => stdin.setRawMode(mode) })
  const lines = createInterface({ input: input.stream, output: output.stream, terminal: true, history })
  const restore = () => void (isDumb || stdout.write(PASTE_MODE_OFF))
  const begin = () => void (isDumb || stdout.write(PASTE_MODE_ON))
  begin()
  process.once('exit', restore)
  const leave = () => lines.close()
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, leave)
  stdin.pipe(input.stream)
  const typed = createTypedLines(lines, output, options)
  lines.on('close', () => {
    stdin.unpipe(input.stream)
    stdin.pause()
    restore()
    process.off('exit', restore)
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.off(signal, leave)
  })
  lines.on('SIGINT', options.onInterrupt)
  // Ctrl-Z and back: the editor is paused then, and the shell has used the terminal.
  lines.on('SIGCONT', () => {
    begin()
    lines.resume()
  })
  input.stream.on('keypress', options.onKey)
  return { ...typed, expand: input.expand, leave }
}

type TypedLines = Omit<ChatKeyboard, 'expand' | 'leave'>

function createTypedLines(
  lines: Interface,
  output: QuietableOutput,
  { takeDuringTurn }: Pick<ChatKeyboardOptions, 'takeDuringTurn'>,
): TypedLines {
  const leaving = new AbortController()
  const typed: TypedLine[] = []
  const changed = createWakeUp()
  lines.on('line', (line) => {
    const isShown = !output.isQuiet()
    // At once, so that characters behind the end of the line are not shown either.
    output.setQuiet(true)
    if (isShown || !takeDuringTurn(line)) typed.push({ line, isShown })
    changed.wake()
  })
  lines.on('close', () => {
    leaving.abort()
    changed.wake()
  })
  const setDraft = (line: string) => Object.assign(lines, { line, cursor: line.length })
  const showPrompt = () => {
    // The editor counts the rows that it has drawn, also those that were not shown.
    Object.assign(lines, { prevRows: 0 })
    lines.prompt(true)
  }
  const next: ChatKeyboard['next'] = async (prompt, signal) => {
    const isEmpty = () => typed.length === 0 && !leaving.signal.aborted && signal?.aborted !== true
    if (isEmpty()) {
      lines.setPrompt(prompt)
      output.setQuiet(false)
      showPrompt()
    }
    while (isEmpty()) await changed.wait(signal)
    output.setQuiet(true)
    return signal?.aborted === true ? undefined : typed.shift()
  }
  return {
    next,
    async nextFresh(prompt, signal) {
      const before = typed.splice(0)
      const draft = lines.line
      setDraft('')
      try {
        return (await next(prompt, signal))?.line
      } finally {
        typed.unshift(...before)
        setDraft(draft)
      }
    },
    draft: () => lines.line,
    linesWaiting: () => typed.length,
    dropDraft() {
      if (output.isQuiet() || lines.line === '') return false
      output.stream.write('\n')
      setDraft('')
      showPrompt()
      return true
    },
    writeAbovePrompt(text) {
      if (output.isQuiet()) return false
      const { rows } = lines.getCursorPos()
      output.stream.write(`\r${rows > 0 ? `\u001b[${rows}A` : ''}\u001b[J${text}`)
      showPrompt()
      return true
    },
    leaving: leaving.signal,
  }
}

interface QuietableOutput {
  readonly stream: Writable
  setQuiet(isQuiet: boolean): void
  isQuiet(): boolean
}

/** The output of the line editor, which drops what is written while it is quiet. */
function createQuietableOutput(stdout: NodeJS.WriteStream): QuietableOutput {
  let isQuiet = true
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      if (!isQuiet) stdout.write(chunk)
      done()
    },
  })
  Object.defineProperty(stream, 'columns', { get: () => stdout.columns })
  const resized = () => stream.emit('resize')
  stdout.on('resize', resized)
  stream.on('close', () => stdout.off('resize', resized))
  return {
    stream,
    setQuiet(next) {
      isQuiet = next
    },
    isQuiet: () => isQuiet,
  }
}
