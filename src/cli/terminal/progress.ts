/**
 * What somebody sees while a command waits: on a terminal one line that moves and counts, elsewhere a plain line at the
 * start and now and then. It goes to stderr, so that stdout stays the answer.
 */
import type { Terminal } from '../command-line.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const PLAIN_LINE_MS = 30_000
const CLEAR_LINE = '\r\u001b[2K'

export interface Progress {
  update(text: string): void
  /** Idempotent; leaves nothing on a terminal. */
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

/** Shows it while the work goes on. */
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
