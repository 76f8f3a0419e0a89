/** The calls of the platform client that the side panel of the web page needs: dead letters, tokens, files. */
import { MoleculeError } from '../errors.ts'
import { allPages, type Paged, withAfter } from './pages.ts'
import type { TokenView } from './views.ts'

export interface DeadLetterView {
  readonly id: string
  readonly task_id: string
  readonly context_id: string
  readonly code: string
  readonly reason: string
  readonly detail?: string
  readonly failures: number
  readonly losses: number
  readonly sender: { readonly kind: string; readonly name: string; readonly door: string }
  readonly message: { readonly parts: readonly { readonly text?: string }[] }
  readonly at: string
}

export interface ConnectCommandView {
  readonly auth_token: string
  readonly connect: string
  /** They stay valid. */
  readonly earlier_tokens: readonly TokenView[]
}

export interface VersionedFile {
  /** Undefined where there is no such file. */
  readonly text: string | undefined
  readonly version: string
}

export interface PanelCalls {
  listDeadLetters(workspaceId: string): Promise<DeadLetterView[]>
  /** The id of the new task. */
  replayDeadLetter(workspaceId: string, id: string): Promise<string>
  discardDeadLetter(workspaceId: string, id: string): Promise<void>
  /** A new token for the bridge of an external workspace, and the command that uses it. */
  createConnectCommand(workspaceId: string): Promise<ConnectCommandView>
  readVersionedFile(workspaceId: string, path: string): Promise<VersionedFile>
  /** Refused with `unsupported_operation` when the file has another version than this. */
  writeVersionedFile(workspaceId: string, path: string, file: { text: string; version: string }): Promise<void>
}

interface PanelRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: string
  readonly isVersioned?: boolean
  readonly version?: string
}

/** The version of a file that does not exist. */
const NO_VERSION = '""'

export function panelCalls(call: (request: PanelRequest) => Promise<unknown>): PanelCalls {
  const at = (id: string, below: string) => `/workspaces/${encodeURIComponent(id)}${below}`
  const get = async <T>(path: string): Promise<T> => (await call({ method: 'GET', path })) as T
  const send = async <T>(method: 'POST' | 'DELETE', path: string, body?: object): Promise<T> =>
    (await call({ method, path, ...(body && { body: JSON.stringify(body) }) })) as T
  const letterAt = (workspaceId: string, id: string) => at(workspaceId, `/dead-letters/${encodeURIComponent(id)}`)
  return {
    async listDeadLetters(id) {
      const pages = await allPages((next) =>
        get<{ dead_letters: DeadLetterView[] } & Paged>(withAfter(at(id, '/dead-letters'), next)),
      )
      return pages.flatMap((page) => page.dead_letters)
    },
    replayDeadLetter: async (workspaceId, id) =>
      (await send<{ task_id: string }>('POST', `${letterAt(workspaceId, id)}/replay`)).task_id,
    discardDeadLetter: (workspaceId, id) => send('DELETE', letterAt(workspaceId, id)),
    createConnectCommand: (id) => send('POST', at(id, '/connect-command')),
    ...fileCalls(call),
  }
}

function fileCalls(
  call: (request: PanelRequest) => Promise<unknown>,
): Pick<PanelCalls, 'readVersionedFile' | 'writeVersionedFile'> {
  const file = (id: string, path: string) =>
    `/workspaces/${encodeURIComponent(id)}/files/${path.split('/').map(encodeURIComponent).join('/')}`
  return {
    async readVersionedFile(workspaceId, path) {
      try {
        return (await call({ method: 'GET', path: file(workspaceId, path), isVersioned: true })) as VersionedFile
      } catch (thrown) {
        if (thrown instanceof MoleculeError && thrown.code === 'not_found')
          return { text: undefined, version: NO_VERSION }
        throw thrown
      }
    },
    async writeVersionedFile(workspaceId, path, { text, version }) {
      await call({ method: 'PUT', path: file(workspaceId, path), body: text, version })
    },
  }
}
