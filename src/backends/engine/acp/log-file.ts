/**
 * Reads what a running agent appends to its log file: gemini writes nothing to stderr while it speaks ACP. Real time,
 * because it watches a process. Invariant: the file stays small, and no timer is left after `stop`.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs'

const POLL_MS = 250
/** Read at once; the rest waits for the next look. */
const READ_BYTES_MAX = 256 * 1024
/** A larger file is emptied: the agent appends, so it goes on at its beginning. */
const FILE_BYTES_MAX = 4 * 1024 * 1024
/** Of a line; the rest of a longer one is dropped. */
const LINE_CHARACTERS_MAX = 16 * 1024

export function followLogFile(path: string, onLine: (line: string) => void): { stop(): void } {
  const file = openSync(path, 'r+')
  const buffer = Buffer.alloc(READ_BYTES_MAX)
  let offset = 0
  let rest = ''
  const look = () => {
    if (fstatSync(file).size <= offset) return
    const bytes = readSync(file, buffer, 0, READ_BYTES_MAX, offset)
    offset += bytes
    const lines = `${rest}${buffer.toString('utf8', 0, bytes)}`.split('\n')
    rest = (lines.pop() ?? '').slice(0, LINE_CHARACTERS_MAX)
    for (const line of lines) onLine(line.slice(0, LINE_CHARACTERS_MAX))
    if (offset < FILE_BYTES_MAX) return
    ftruncateSync(file, 0)
    offset = 0
  }
  const timer = setInterval(look, POLL_MS).unref()
  return {
    stop() {
      clearInterval(timer)
      closeSync(file)
    },
  }
}
