/**
 * Shows on stderr that a command waits: on a terminal one line with a spinner and the time, elsewhere a plain line at
 * the start and every 30 s. Stdout stays free for the answer.
 */
import { withoutControls } from '../../printable.ts'
import { formatSeconds } from './human-time.ts'
import type { Terminal } from './terminal.ts'

export const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
/** A message that begins at once has a reason to wait for a moment, which says nothing. */
export const REASON_AFTER_MS = 500
const FRAME_MS = 100
const PLAIN_LINE_MS = 30_000
const CLEAR_LINE = '\r\u001b[2K'

export interface Progress {
  update(text: string): void
  /** A line that stays, above the one that changes. */
  print(text: string): void
  /** Idempotent; clears the line on a terminal. */
  stop(): void
}

function startProgress({ err, interactive }: Pick<Terminal, 'err' | 'interactive'>, first: string): Progress {
  const startMs = performance.now()
  let text = oneLine(first)
  let frame = 0
  const elapsed = () => formatSeconds(Math.floor((performance.now() - startMs) / 1000))
  const line = () =>
    interactive ? `${CLEAR_LINE}${FRAMES[frame++ % FRAMES.length]} ${text} ${elapsed()}` : `${text}\n`
  err(line())
  const timer = setInterval(
    () => err(interactive ? line() : `${text} (${elapsed()})\n`),
    interactive ? FRAME_MS : PLAIN_LINE_MS,
  )
  return {
    update(given) {
      const next = oneLine(given)
      // Prevents a plain line for each second of "next try in 14 s".
      const isSame = interactive ? next === text : withoutNumbers(next) === withoutNumbers(text)
      text = next
      if (!isSame) err(line())
    },
    print(given) {
      err(`${interactive ? CLEAR_LINE : ''}${oneLine(given)}\n`)
      if (interactive) err(line())
    },
    stop() {
      clearInterval(timer)
      if (interactive) err(CLEAR_LINE)
    },
  }
}

/** A reason may quote an agent: its control characters must not reach the terminal, nor a line break end the line. */
const oneLine = (text: string): string => withoutControls(text).replaceAll(/\s+/g, ' ')

/** Prevents a new line for each second of a countdown. */
export const withoutNumbers = (text: string): string => text.replaceAll(/\d+/g, '')

/** Shows the text until the work ends. */
export async function withProgress<T>(
  terminal: Terminal,
  text: string,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = startProgress(terminal, text)
  try {
    return await work(progress)
  } finally {
    progress.stop()
  }
}
