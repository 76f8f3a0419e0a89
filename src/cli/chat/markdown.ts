/**
 * Writes streaming Markdown to a terminal: headings, bold, code and lists, as the characters arrive. It holds back a few
 * characters until their meaning is clear and removes control characters, which could drive the reader's terminal.
 * Not a library: marked-terminal and its like render a whole document, while this appends each piece as it arrives.
 */
import { withoutControls } from '../../printable.ts'

export interface MarkdownWriter {
  push(delta: string): void
  /** Writes the held characters and ends every style. */
  end(): void
  /** True when the last written character ended a line. */
  atLineStart(): boolean
}

const RESET = '\u001b[0m'
const BOLD = '\u001b[1m'
const HEADING = '\u001b[1;4m'
const CODE = '\u001b[36m'
const DIM = '\u001b[2m'

/** Writes the text unchanged, for output that is not a terminal. */
export function createPlainWriter(write: (text: string) => void): MarkdownWriter {
  let last = '\n'
  return {
    push(delta) {
      if (delta === '') return
      last = delta.at(-1) ?? last
      write(delta)
    },
    end: () => undefined,
    atLineStart: () => last === '\n',
  }
}

interface MarkdownState {
  held: string
  lineStart: boolean
  fence: boolean
  heading: boolean
  bold: boolean
  code: boolean
}

export function createMarkdownWriter(write: (text: string) => void): MarkdownWriter {
  const state: MarkdownState = { held: '', lineStart: true, fence: false, heading: false, bold: false, code: false }
  const drain = (final: boolean) => {
    while (state.held !== '') {
      const step = state.lineStart ? startOfLine(state, final) : withinLine(state, final)
      if (step === undefined) return
      state.held = state.held.slice(step.taken)
      if (step.text !== '') write(step.text)
    }
  }
  return {
    push(delta) {
      state.held += withoutControls(delta)
      drain(false)
    },
    end() {
      drain(true)
      if (state.heading || state.bold || state.code || state.fence) write(RESET)
      Object.assign(state, { fence: false, heading: false, bold: false, code: false })
    },
    atLineStart: () => state.lineStart && state.held === '',
  }
}

/** How many held characters are consumed and the text written for them; undefined = wait for more characters. */
type Step = { readonly taken: number; readonly text: string } | undefined

function startOfLine(state: MarkdownState, final: boolean): Step {
  const { held } = state
  const fence = /^ {0,3}(`{3}[^\n]*)(\n|$)/.exec(held)
  if (fence !== null && (fence[2] !== '' || final)) {
    state.fence = !state.fence
    return { taken: fence[0].length, text: `${DIM}${fence[1]}${RESET}${fence[2]}` }
  }
  const undecided = state.fence ? /^ {0,3}(`{0,2}|`{3}[^\n]*)$/ : /^ *(#{1,6}|[-*+]|`{1,2}|`{3}[^\n]*)?$/
  if (!final && undecided.test(held)) return undefined
  state.lineStart = false
  if (state.fence) return { taken: 0, text: CODE }
  const heading = /^#{1,6} +/.exec(held)
  if (heading !== null) {
    state.heading = true
    return { taken: heading[0].length, text: HEADING }
  }
  const bullet = /^( *)[-*+] /.exec(held)
  return bullet === null ? { taken: 0, text: '' } : { taken: bullet[0].length, text: `${bullet[1]}• ` }
}

function withinLine(state: MarkdownState, final: boolean): Step {
  const { held, code } = state
  const special = held.search(specialIn(state))
  if (special === -1) return { taken: held.length, text: held }
  if (special > 0) return { taken: special, text: held.slice(0, special) }
  if (held[0] === '\n') return endOfLine(state)
  if (held[0] === '`') {
    state.code = !code
    return { taken: 1, text: state.code ? CODE : endStyle(state) }
  }
  if (held.length < 3 && !final) return undefined
  if (state.bold && held.startsWith('**')) {
    state.bold = false
    return { taken: 2, text: endStyle(state) }
  }
  if (!state.bold && /^\*\*\S/.test(held)) {
    state.bold = true
    return { taken: 2, text: BOLD }
  }
  return { taken: 1, text: '*' }
}

function specialIn({ fence, code }: MarkdownState): RegExp {
  if (fence) return /\n/
  return code ? /[\n`]/ : /[\n`*]/
}

/** A style that is not closed ends with its line. */
function endOfLine(state: MarkdownState): Step {
  const styled = state.heading || state.bold || state.code || state.fence
  Object.assign(state, { lineStart: true, heading: false, bold: false, code: false })
  return { taken: 1, text: styled ? `${RESET}\n` : '\n' }
}

/** Resets one style and restores those around it. */
const endStyle = ({ heading, bold }: MarkdownState): string => `${RESET}${heading ? HEADING : ''}${bold ? BOLD : ''}`
