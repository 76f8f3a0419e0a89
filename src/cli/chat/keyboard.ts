/** The lines that a user types in a chat, in order, one per call. */
import type { Interface } from 'node:readline'
import { createWakeUp } from '../../wait.ts'

export interface ChatKeyboard {
  /** The next line; undefined when the signal aborts first, or when input has ended. */
  next(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** Like `next`, but ignores earlier lines: an answer must not have been typed before its question was shown. */
  nextFresh(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** Aborts when the user leaves. */
  readonly leaving: AbortSignal
}

export function createChatKeyboard(lines: Interface): ChatKeyboard {
  const leaving = new AbortController()
  const typed: string[] = []
  const changed = createWakeUp()
  lines.on('line', (line) => {
    typed.push(line)
    changed.wake()
  })
  lines.on('close', () => {
    leaving.abort()
    changed.wake()
  })
  const next: ChatKeyboard['next'] = async (prompt, signal) => {
    const isEmpty = () => typed.length === 0 && !leaving.signal.aborted && signal?.aborted !== true
    lines.setPrompt(prompt)
    if (isEmpty()) lines.prompt()
    while (isEmpty()) await changed.wait(signal)
    return signal?.aborted === true ? undefined : typed.shift()
  }
  return {
    next,
    async nextFresh(prompt, signal) {
      const before = typed.splice(0)
      try {
        return await next(prompt, signal)
      } finally {
        typed.unshift(...before)
      }
    },
    leaving: leaving.signal,
  }
}
