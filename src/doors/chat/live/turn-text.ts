/**
 * What a turn has written and which tools it used, from the events of the log. The reducer is that of the page and of the
 * terminal. Invariant: a new attempt begins anew, and only the beginning of a long text is kept in memory.
 */
import { applyEvents, type ChatToolView, type LiveEntry } from '../../../client/live-conversation.ts'
import type { ActivityRow } from '../../../views/activity.ts'

/** Tools that are kept; of earlier ones only their number. */
const TOOLS_MAX = 20

export interface TurnText {
  /** What the turn wrote up to this number of the log; later rows add to it. */
  begin(written: { readonly text?: string | undefined; readonly tools: readonly ChatToolView[] }, seq: number): void
  add(row: ActivityRow): void
  /** What comes now is shown without what came before. */
  cut(): void
  readonly text: string
  readonly characters: number
  readonly tools: readonly ChatToolView[]
  readonly toolCount: number
}

export function createTurnText(taskId: string, charactersMax: number): TurnText {
  const empty: LiveEntry = { task_id: taskId, state: 'running', tools: [], seq: 0 }
  let entry = empty
  let droppedCharacters = 0
  let droppedTools = 0
  const bound = () => {
    const text = entry.reply?.text ?? ''
    if (entry.reply !== undefined && text.length > charactersMax) {
      droppedCharacters += text.length - charactersMax
      entry = { ...entry, reply: { ...entry.reply, text: text.slice(0, charactersMax) } }
    }
    if (entry.tools.length <= TOOLS_MAX) return
    droppedTools += entry.tools.length - TOOLS_MAX
    entry = { ...entry, tools: entry.tools.slice(-TOOLS_MAX) }
  }
  const forget = () => {
    droppedCharacters = 0
    droppedTools = 0
  }
  return {
    begin({ text = '', tools }, seq) {
      forget()
      entry = { ...empty, seq, tools, reply: { text, partial: true, artifacts: [] } }
      bound()
    },
    add({ entries }) {
      const applied = applyEvents({ entries: [entry] }, entries)
      if (applied.changes.some(({ type }) => type === 'again')) forget()
      entry = applied.entries[0] ?? entry
      bound()
    },
    cut() {
      droppedCharacters = 0
      entry = { ...entry, reply: undefined }
    },
    get text() {
      return entry.reply?.text ?? ''
    },
    get characters() {
      return droppedCharacters + (entry.reply?.text.length ?? 0)
    },
    get tools() {
      return entry.tools
    },
    get toolCount() {
      return droppedTools + entry.tools.length
    },
  }
}
