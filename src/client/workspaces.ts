/** Workspaces and their files: what takes more than one call, or has an answer of two kinds. */

import type { ApiAnswer, ApiBody } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import type { ApiClient } from './api-client.ts'
import type { WorkspaceSummary } from './views.ts'

type Caller = Pick<ApiClient, 'call'>

/** The answer of a dry run. `ok` is false where the workspace would be `failed`. */
export type WorkspaceCheck = Extract<ApiAnswer<'PATCH /workspaces/{id}'>, { readonly ok: boolean }>
/** With the token and the command of its bridge where it is external. */
export type CreatedWorkspaceView = Exclude<ApiAnswer<'POST /workspaces'>, WorkspaceCheck>
export type WorkspaceBody = ApiBody<'POST /workspaces'>
/** Null removes a value. */
export type WorkspaceChangeBody = ApiBody<'PATCH /workspaces/{id}'>

const PAGE_WORKSPACES = 1000

/** All workspaces that the token reaches. */
export async function listWorkspaces(
  client: Pick<ApiClient, 'pages'>,
  signal?: AbortSignal,
): Promise<readonly WorkspaceSummary[]> {
  const pages = await client.pages('GET /workspaces', { limit: PAGE_WORKSPACES }, { signal })
  return pages.flatMap(({ workspaces }) => workspaces)
}

export const createWorkspace = async (client: Caller, body: WorkspaceBody): Promise<CreatedWorkspaceView> =>
  requireDone(await client.call('POST /workspaces', { body }))

/** Changes the given fields. */
export const changeWorkspace = async (
  client: Caller,
  id: string,
  body: WorkspaceChangeBody,
): Promise<WorkspaceSummary> => requireDone(await client.call('PATCH /workspaces/{id}', { id, body }))

/** Refuses what creating would refuse. Nothing is made. */
export const checkNewWorkspace = async (client: Caller, body: WorkspaceBody): Promise<WorkspaceCheck> =>
  requireCheck(await client.call('POST /workspaces', { dry_run: true, body }))

/** Refuses what changing would refuse. Nothing is changed. */
export const checkWorkspaceChange = async (
  client: Caller,
  id: string,
  body: WorkspaceChangeBody,
): Promise<WorkspaceCheck> => requireCheck(await client.call('PATCH /workspaces/{id}', { id, dry_run: true, body }))

function requireDone<Answer extends object>(answer: Answer): Exclude<Answer, WorkspaceCheck> {
  if (isCheck(answer)) throw new MoleculeError('internal', 'the platform only checked the workspace')
  return answer as Exclude<Answer, WorkspaceCheck>
}

function requireCheck(answer: object): WorkspaceCheck {
  if (isCheck(answer)) return answer
  throw new MoleculeError('internal', 'the platform did not only check the workspace')
}

const isCheck = (answer: object): answer is WorkspaceCheck => 'ok' in answer

export interface VersionedFile {
  /** Undefined where there is no such file. */
  readonly text: string | undefined
  readonly version: string
}

/** The version of a file that does not exist. */
export const NO_FILE_VERSION = '""'

/** A file in the workspace's folder. `version` is the `If-Match` of a write that overwrites no other change. */
export async function readVersionedFile(
  client: Pick<ApiClient, 'exchange'>,
  id: string,
  path: string,
): Promise<VersionedFile> {
  try {
    const { answer, headers } = await client.exchange('GET /workspaces/{id}/files/{+path}', { id, path })
    return { text: answer, version: headers.get('etag') ?? '' }
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found')
      return { text: undefined, version: NO_FILE_VERSION }
    throw thrown
  }
}

/** The text of a file in the workspace's folder; undefined where there is none. */
export const readWorkspaceFile = async (
  client: Pick<ApiClient, 'exchange'>,
  id: string,
  path: string,
): Promise<string | undefined> => (await readVersionedFile(client, id, path)).text
