/**
 * Who decides first: every transaction that decides something about a workspace's messages begins with its row of
 * counters. What it reads after that stays as it is until it commits; what it read before may have changed meanwhile.
 */
import { type Statement, statement } from '../../store/store.ts'

export const lockWorkspace = (workspaceId: string): Statement =>
  statement('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId])
