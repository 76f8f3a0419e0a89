/** The tools that the turns of a message used, for the chat page: from the log, within the bytes of the page. */
import type { ApiAnswer } from '../api/api.ts'
import type { LogItem } from '../inbox/rows/log.ts'
import type { TaskState } from '../protocol/a2a.ts'
import { FOLLOW_BYTES_MAX, withinPage } from '../store/page-budget.ts'
import { sql, type Transaction } from '../store/store.ts'
import { instant } from './instant.ts'

/** Rows of the log that are read for the tools of one message. */
const TOOL_ROWS_MAX = 400

type ChatMessage = ApiAnswer<'GET /workspaces/{id}/conversations/{conversation}'>['messages'][number]
type ChatTools = Pick<ChatMessage, 'tools' | 'more_tools'>
type ChatTool = ChatMessage['tools'][number]

const TOOLS = `select e.seq, e.at_ms, e.items, k.total from (${withinPage(
  `select q.*, count(*) over () as total from (select workspace_id, seq, octet_length(items) as bytes from events
   where task_id = $1 and message_id = $2 and delta = 0 order by seq limit ${TOOL_ROWS_MAX}) q`,
  'p.seq',
  FOLLOW_BYTES_MAX,
)}) k join events e on e.workspace_id = k.workspace_id and e.seq = k.seq order by e.seq`

/** The tools of a message. `takes` says whether so many bytes still fit into the page. */
export function* readChatTools(
  { id, task_id: taskId }: { readonly id: string; readonly task_id: string },
  takes: (bytes: number) => boolean,
): Transaction<ChatTools> {
  const rows = yield* sql<{ seq: number; at_ms: number; items: string; total: number }>(TOOLS, [taskId, id])
  const isWhole = takes(rows.reduce((sum, { items }) => sum + items.length, 0))
  if (!isWhole) return { tools: [], more_tools: true }
  const tools = toTools(rows.map(({ at_ms: atMs, items }) => ({ atMs, items: JSON.parse(items) as LogItem[] })))
  // Rows with diffs may be more than the bytes of a page.
  const total = rows[0]?.total ?? 0
  return { tools, more_tools: rows.length < total || total >= TOOL_ROWS_MAX ? true : undefined }
}

interface ToolUse extends Omit<ChatTool, 'at' | 'duration_ms'> {
  readonly atMs: number
  readonly durationMs?: number
  readonly waitedBeforeMs: number
}

/** Joins the beginning of each tool with its end. A new attempt begins anew. */
function toTools(log: readonly { readonly atMs: number; readonly items: readonly LogItem[] }[]): ChatTool[] {
  const tools: ToolUse[] = []
  const waits = createWaits()
  for (const { atMs, items } of log) {
    for (const item of items) {
      if (item.t === 'status') waits.add(item.state, atMs)
      if (item.t === 'reset') tools.length = 0
      if (item.t !== 'turn' || item.event.type !== 'tool') continue
      const { type: _type, state, ...use } = item.event
      const index = tools.findLastIndex(
        (tool) => tool.state === 'started' && tool.name === use.name && (use.subject ?? tool.subject) === tool.subject,
      )
      const begun = state === 'started' ? undefined : tools[index]
      const waitedMs = waits.untilMs(atMs)
      if (begun === undefined) tools.push({ ...use, state, atMs, waitedBeforeMs: waitedMs })
      else tools[index] = { ...begun, ...use, state, durationMs: atMs - begun.atMs - (waitedMs - begun.waitedBeforeMs) }
    }
  }
  return tools.map(({ name, subject, state, atMs, durationMs, waitedBeforeMs, diffs }) => {
    const waitedMs = waits.untilMs(0) - waitedBeforeMs
    return {
      name,
      subject,
      state,
      at: instant(atMs),
      duration_ms: durationMs,
      waited_ms: state === 'started' && waitedMs > 0 ? waitedMs : undefined,
      diffs,
    }
  })
}

/** The time that a turn has waited for a person: nothing of it is the time of a tool. */
function createWaits() {
  let endedMs = 0
  let sinceMs: number | undefined
  const untilMs = (atMs: number) => endedMs + (sinceMs === undefined ? 0 : Math.max(0, atMs - sinceMs))
  return {
    untilMs,
    add(state: TaskState, atMs: number) {
      endedMs = untilMs(atMs)
      sinceMs = state === 'TASK_STATE_AUTH_REQUIRED' || state === 'TASK_STATE_INPUT_REQUIRED' ? atMs : undefined
    },
  }
}
