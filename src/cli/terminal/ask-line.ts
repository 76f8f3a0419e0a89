/** Asks a person at the terminal for one line. */
import { once } from 'node:events'
import { onAbort } from '../../wait.ts'
import type { Terminal } from './terminal.ts'

/** The trimmed line; empty where there is no keyboard, and where the input ends (Ctrl-D) or the signal aborts. */
export async function askLine(
  { keyboard, err }: Pick<Terminal, 'keyboard' | 'err'>,
  question: string,
  signal?: AbortSignal,
): Promise<string> {
  if (keyboard === undefined) return ''
  err(question)
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: keyboard })
  let release = (): void => undefined
  try {
    // Prevents a command that never ends: a question stays open when its input closes.
    const closed = once(lines, 'close').then(() => '')
    const answer = lines.question('')
    if (signal) release = onAbort(signal, () => lines.close())
    return (await Promise.race([answer, closed])).trim()
  } finally {
    release()
    lines.close()
  }
}
