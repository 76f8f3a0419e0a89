/** The calls of the platform client that create, check, change and delete workspaces, and those about their files. */
import { MoleculeError } from '../errors.ts'
import type { ApiAnswers } from './api-types.ts'

interface WorkspaceRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: string
  readonly isText?: boolean
}

/** A workspace as the token may see it. */
export type WorkspaceSummary = ApiAnswers['GET /workspaces/{id}']

/** A body of `POST` or `PATCH`. In a `PATCH`, null removes a value. */
type WorkspaceBody = Readonly<Record<string, unknown>>

/** The answer of a dry run. `ok` is false where the workspace would be `failed`. */
export interface WorkspaceCheckView {
  readonly ok: boolean
  readonly reason?: string
  readonly warnings: readonly string[]
}

export interface WorkspaceCalls {
  createWorkspace(input: WorkspaceBody): Promise<WorkspaceSummary & Record<string, unknown>>
  /** Changes the given fields. */
  changeWorkspace(id: string, change: WorkspaceBody): Promise<WorkspaceSummary>
  /** Refuses what creating, or with an id changing, would refuse. Nothing is changed. */
  checkWorkspace(body: WorkspaceBody, id?: string): Promise<WorkspaceCheckView>
  /** Returns the ids of the deleted workspaces. */
  deleteWorkspace(id: string, options: { readonly confirm: string; readonly cascade: boolean }): Promise<string[]>
  /** The text of a file in the workspace's folder; undefined where there is none. */
  readWorkspaceFile(id: string, path: string): Promise<string | undefined>
  writeWorkspaceFile(id: string, path: string, text: string): Promise<void>
  /** Refuses what writing would refuse; the details of the error have `problems`. Writes nothing. */
  checkWorkspaceFile(id: string, path: string, text: string): Promise<WorkspaceCheckView>
  removeWorkspaceFile(id: string, path: string): Promise<void>
}

export function workspaceCalls(call: (request: WorkspaceRequest) => Promise<unknown>): WorkspaceCalls {
  const at = (id: string, below = '') => `/workspaces/${encodeURIComponent(id)}${below}`
  const file = (id: string, path: string) => at(id, `/files/${path.split('/').map(encodeURIComponent).join('/')}`)
  return {
    createWorkspace: async (input) =>
      (await call({ method: 'POST', path: '/workspaces', body: JSON.stringify(input) })) as WorkspaceSummary &
        Record<string, unknown>,
    changeWorkspace: async (id, change) =>
      (await call({ method: 'PATCH', path: at(id), body: JSON.stringify(change) })) as WorkspaceSummary,
    async checkWorkspace(input, id) {
      const body = JSON.stringify(input)
      const request =
        id === undefined
          ? ({ method: 'POST', path: '/workspaces?dry_run=true', body } as const)
          : ({ method: 'PATCH', path: at(id, '?dry_run=true'), body } as const)
      return (await call(request)) as WorkspaceCheckView
    },
    async deleteWorkspace(id, { confirm, cascade }) {
      const path = at(id, `?confirm=${encodeURIComponent(confirm)}&cascade=${cascade}`)
      return ((await call({ method: 'DELETE', path })) as { deleted: string[] }).deleted
    },
    async readWorkspaceFile(id, path) {
      try {
        return (await call({ method: 'GET', path: file(id, path), isText: true })) as string
      } catch (thrown) {
        if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
        throw thrown
      }
    },
    async writeWorkspaceFile(id, path, text) {
      await call({ method: 'PUT', path: file(id, path), body: text })
    },
    checkWorkspaceFile: async (id, path, text) =>
      (await call({ method: 'PUT', path: `${file(id, path)}?dry_run=true`, body: text })) as WorkspaceCheckView,
    async removeWorkspaceFile(id, path) {
      await call({ method: 'DELETE', path: file(id, path) })
    },
  }
}
