/** Where the people of a conversation are: the addresses to which its answers go. */
import type { ReplyAddress } from '../../inbox/delivery.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'

export interface TurnPeople {
  /** Of the conversation itself; absent where its answers go to no door. */
  readonly own?: ReplyAddress
  /** Of the message at the root of its tree, where another workspace delegated to it. */
  readonly root?: ReplyAddress
}

/** All messages of a conversation come from one place, so the last one tells. */
export const readTurnPeople = (store: ReadStore, workspaceId: string, conversationId: string): Promise<TurnPeople> =>
  store.read(() => turnPeople(workspaceId, conversationId))

function* turnPeople(workspaceId: string, conversationId: string): Transaction<TurnPeople> {
  const [row] = yield* sql<{ own: string | null; root: string | null }>(
    `select m.reply_to as own, r.reply_to as root from messages m left join messages r on r.id = m.root_id
     where m.conversation_id = $2 and m.workspace_id = $1 order by m.n desc limit 1`,
    [workspaceId, conversationId],
  )
  const address = (text: string | null | undefined) => (text == null ? undefined : (JSON.parse(text) as ReplyAddress))
  const [own, root] = [address(row?.own), address(row?.root)]
  return { ...(own !== undefined && { own }), ...(root !== undefined && { root }) }
}
