/**
 * What a tool shows of a task: its state and the text of its answer, in pages. A client cuts a long result in the middle
 * or hides it in a file (codex from 30 KB on), so a longer answer is read page by page.
 */
import type { Part, Task } from '../../protocol/a2a.ts'

/** Below the smallest limit that was measured. */
const PAGE_BYTES_MAX = 24_000

/** `TASK_STATE_INPUT_REQUIRED` becomes `input_required`. */
export const stateName = ({ status }: Task): string => status.state.replace('TASK_STATE_', '').toLowerCase()

/** The text of the answer; without one, the text of the status: why it waits, what it asks, why it failed. */
export function answerText(task: Task): string {
  const artifacts = (task.artifacts ?? []).map(({ parts }) => partsText(parts)).filter((text) => text !== '')
  return artifacts.length > 0 ? artifacts.join('\n') : statusText(task)
}

export const statusText = ({ status }: Task): string => partsText(status.message?.parts ?? [])

const partsText = (parts: readonly Part[]): string => parts.map(partText).join('')

function partText(part: Part): string {
  if (part.text !== undefined) return part.text
  if (part.data !== undefined) return JSON.stringify(part.data)
  const name = part.filename ?? 'a file'
  if (part.url !== undefined) return `[${name}: ${part.url}]`
  const type = part.mediaType === undefined ? '' : `, ${part.mediaType}`
  return `[${name}${type}, ${Buffer.byteLength(part.raw ?? '', 'base64')} bytes]`
}

/** Cuts a text into pages, between characters. An empty text has one page. */
export function pagesOf(text: string): readonly string[] {
  const bytes = Buffer.from(text)
  if (bytes.length <= PAGE_BYTES_MAX) return [text]
  const pages: string[] = []
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + PAGE_BYTES_MAX, bytes.length)
    while (end < bytes.length && isContinuation(bytes[end])) end--
    pages.push(bytes.toString('utf8', start, end))
    start = end
  }
  return pages
}

/** Whether a byte of UTF-8 is inside of a character. */
const isContinuation = (byte: number | undefined): boolean => ((byte ?? 0) & 0xc0) === 0x80

/** The first page of the answer, and where the rest is. */
export function firstPage(task: Task): string {
  const pages = pagesOf(answerText(task))
  const [first = ''] = pages
  if (pages.length === 1) return first
  const rest = `check_task_status with task_id "${task.id}" and page 2 shows the next page`
  return `${first}\n\n[This is page 1 of ${pages.length} of the answer. ${rest}.]`
}
