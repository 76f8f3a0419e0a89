/** Shows a delegation in the log of its parent, and notes on the parent that it has children. */
import { sql, type Transaction, together } from '../../store/store.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { markParent } from '../rows/message-updates.ts'
import type { LeaseKey } from '../worker.ts'
import { workspaceName } from './workspace-name.ts'

const TARGET_NAME = `select ${workspaceName('$1')} as name`

export function* recordDelegation(
  { workspaceId, taskId, messageId }: LeaseKey,
  child: { readonly taskId: string; readonly workspaceId: string },
): Transaction<void> {
  const [target] = yield* sql<{ name: string | null }>(TARGET_NAME, [child.workspaceId])
  const item = { t: 'delegated', taskId: child.taskId, workspace: target?.name ?? child.workspaceId } as const
  yield* together([
    lockWorkspace(workspaceId),
    markParent(messageId),
    ...recordChange({ workspaceId, entries: [{ taskId, messageId, items: [item] }] }),
  ])
}
