/** `ListTasks`: the caller's tasks, last changed first, page by page. A page token is the position after a page. */
import type { TaskPage, TaskQuery } from '../../../inbox/reception.ts'
import { invalidRequest } from '../../../protocol/invalid-request.ts'
import { listTasksParamsSchema, parseInput } from '../../../protocol/schemas.ts'
import { taskScope } from '../server/auth.ts'
import { letOthersRun } from '../server/body.ts'
import { requireWorkspace } from '../server/reach.ts'
import type { A2aCall, A2aContext } from './call.ts'

const PAGE_SIZE = 50

export async function listTasks(call: A2aCall, { reception, workspaces }: A2aContext): Promise<unknown> {
  const { workspaceId, identity, rpc } = call
  const params = parseInput(listTasksParamsSchema, rpc.params ?? {}, 'params')
  const { contextId, status, historyLength, statusTimestampAfter, pageToken, pageSize = PAGE_SIZE } = params
  const query: TaskQuery = {
    workspaceId,
    ...taskScope(identity, workspaceId),
    limit: pageSize,
    artifacts: params.includeArtifacts === true,
    contextId,
    state: status,
    historyLength,
    ...(statusTimestampAfter !== undefined && { changedSinceMs: Date.parse(statusTimestampAfter) }),
    ...(pageToken !== undefined && { after: readPageToken(pageToken) }),
  }
  const { tasks, total, next } = await reception.list(query)
  // A page may be one task of 16 MiB: to read it and to write it as text takes 45 ms each.
  await letOthersRun()
  // Without this an unknown workspace would be answered with an empty list.
  if (total === 0) await requireWorkspace(workspaces, workspaceId)
  return {
    tasks,
    nextPageToken: next === undefined ? '' : writePageToken(next),
    pageSize,
    totalSize: total,
  }
}

type PagePosition = NonNullable<TaskPage['next']>

function writePageToken({ updatedAtMs, id }: PagePosition): string {
  return Buffer.from(`${updatedAtMs}.${id}`).toString('base64url')
}

function readPageToken(token: string): PagePosition {
  const [, updatedAtMs, id] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(Buffer.from(token, 'base64url').toString()) ?? []
  if (updatedAtMs === undefined || id === undefined)
    throw invalidRequest('params.pageToken', 'is not one of this server')
  return { updatedAtMs: Number(updatedAtMs), id }
}
