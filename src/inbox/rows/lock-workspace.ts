/**
 * The first statement of every transaction that decides about messages of a workspace: it locks the workspace's row of
 * counters. Rows read after it stay as they are until the commit; rows read before it may have changed.
 */
import { type Statement, statement } from '../../store/store.ts'

export const lockWorkspace = (workspaceId: string): Statement =>
  statement('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId])
