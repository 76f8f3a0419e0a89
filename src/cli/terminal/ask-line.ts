/** Asks a person at the terminal for one line. */
import { once } from 'node:events'
import type { Terminal } from './terminal.ts'

/** The trimmed line; empty where there is no keyboard, and where the input ends (Ctrl-D). */
export async function askLine(
  { keyboard, err }: Pick<Terminal, 'keyboard' | 'err'>,
  question: string,
): Promise<string> {
  if (keyboard === undefined) return ''
  err(question)
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: keyboard })
  try {
    // Prevents a command that never ends: a question stays open when its input closes.
    const closed = once(lines, 'close').then(() => '')
    return (await Promise.race([lines.question(''), closed])).trim()
  } finally {
    lines.close()
  }
}
