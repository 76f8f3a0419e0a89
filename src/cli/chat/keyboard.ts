/** The lines that a person types, in order, for whoever asks for the next one. */
import type { Interface } from 'node:readline'

export interface ChatKeyboard {
  /** The next line; undefined when the signal aborts first, or when there will be none any more. */
  next(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** The same, and only what is typed from now on: an answer must not have been typed before its question. */
  nextFresh(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** Aborts when the person leaves. */
  readonly leaving: AbortSignal
}

export function createChatKeyboard(lines: Interface): ChatKeyboard {
  const leaving = new AbortController()
  const typed: string[] = []
  let wake: () => void = () => undefined
  lines.on('line', (line) => {
    typed.push(line)
    wake()
  })
  lines.on('close', () => {
    leaving.abort()
    wake()
  })
  const next: ChatKeyboard['next'] = async (prompt, signal) => {
    const ended = () => leaving.signal.aborted || signal?.aborted === true
    lines.setPrompt(prompt)
    if (typed.length === 0 && !ended()) lines.prompt()
    const withdraw = () => wake()
    signal?.addEventListener('abort', withdraw, { once: true })
    while (typed.length === 0 && !ended()) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    signal?.removeEventListener('abort', withdraw)
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
