/**
 * Shows on stderr that a command waits: on a terminal one line with a spinner and the seconds, elsewhere a plain line at
 * the start and every 30 s. Stdout stays free for the answer.
 */
import type { Terminal } from './terminal.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const PLAIN_LINE_MS = 30_000
const CLEAR_LINE = '\r\u001b[2K'

export interface Progress {
  update(text: string): void
  /** Idempotent; clears the line on a terminal. */
  stop(): void
}

function startProgress({ err, interactive }: Pick<Terminal, 'err' | 'interactive'>, first: string): Progress {
  const startMs = performance.now()
  let text = first
  let frame = 0
  const elapsed = () => `${Math.floor((performance.now() - startMs) / 1000)} s`
  const line = () =>
    interactive ? `${CLEAR_LINE}${FRAMES[frame++ % FRAMES.length]} ${text} ${elapsed()}` : `${text}\n`
  err(line())
  const timer = setInterval(
    () => err(interactive ? line() : `${text} (${elapsed()})\n`),
    interactive ? FRAME_MS : PLAIN_LINE_MS,
  )
  return {
    update(next) {
      if (next === text) return
      text = next
      err(line())
    },
    stop() {
      clearInterval(timer)
      if (interactive) err(CLEAR_LINE)
    },
  }
}

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
