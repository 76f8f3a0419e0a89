/**
 * What a turn had written when its task was cancelled. The pieces of a reply are pruned after an hour, so the cancel
 * stores them as the reply of the message, marked as partial: a stopped answer stays readable for as long as its task.
 */
import type { Artifact } from '../../protocol/a2a.ts'
import type { StoredReply } from '../../protocol/stored-reply.ts'
import { PAGE_BYTES_MAX, withinPage } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { LogItem } from '../rows/log.ts'
import type { TurnEvent } from '../worker.ts'

/** Of a longer log the end is kept. */
const LOG_BYTES_MAX = 4 * PAGE_BYTES_MAX
const CUT = '… '

export interface StoppedTurn {
  readonly task_id: string
  readonly message_id: string
  /** The number of its events: earlier events are of other attempts. */
  readonly appended: number
}

/** Undefined where the turn has written nothing. */
export function* partialReplyOf(turn: StoppedTurn): Transaction<StoredReply | undefined> {
  const events = yield* readLastEvents(turn)
  let text = ''
  const artifacts = new Map<string, Artifact>()
  for (const event of events) {
    if (event.type === 'text') text += event.delta
    // A file of which only a piece came cannot be opened.
    const isWhole = event.type === 'artifact' && event.lastChunk && !event.append
    if (isWhole) artifacts.set(event.artifact.artifactId, event.artifact)
  }
  if (text === '' && artifacts.size === 0) return undefined
  const isCut = events.length < turn.appended
  const parts = text === '' ? [] : [{ text: isCut ? `${CUT}${text}` : text }]
  return { parts, artifacts: [...artifacts.values()], metadata: { partial: true } }
}

const NEWEST_FIRST = `select e.seq, e.items from (${withinPage(
  `select workspace_id, seq, octet_length(items) as bytes from events
   where task_id = $1 and message_id = $2 and seq < $3 order by seq desc limit 256`,
  'p.seq desc',
)}) k join events e on e.workspace_id = k.workspace_id and e.seq = k.seq order by e.seq desc`

/** In order. */
function* readLastEvents({ task_id: taskId, message_id: messageId, appended }: StoppedTurn): Transaction<TurnEvent[]> {
  const newestFirst: TurnEvent[] = []
  let beforeSeq = Number.MAX_SAFE_INTEGER
  for (let bytes = 0; newestFirst.length < appended && bytes < LOG_BYTES_MAX; ) {
    const page = yield* sql<{ seq: number; items: string }>(NEWEST_FIRST, [taskId, messageId, beforeSeq])
    for (const { items } of page) {
      bytes += items.length
      const events = (JSON.parse(items) as LogItem[]).flatMap((item) => (item.t === 'turn' ? [item.event] : []))
      newestFirst.push(...events.toReversed())
    }
    const oldest = page.at(-1)
    if (oldest === undefined) break
    beforeSeq = oldest.seq
  }
  return newestFirst.slice(0, appended).toReversed()
}
