/**
 * Variables that the processes of a turn get about the platform: its URL, their workspace, a token for their conversation
 * only, and a PATH with `a2a` and `molecule`. The platform's own turns and those of a bridge get the same variables.
 */
import { delimiter, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const BIN = resolve(fileURLToPath(import.meta.url), '../../../bin')

export interface ChildEnvironmentOptions {
  readonly apiUrl: string
  readonly workspaceId: string
  /** Undefined when the platform issued none. */
  readonly token: string | undefined
  /** The PATH of this process. */
  readonly path: string | undefined
}

export function childEnvironmentOf({
  apiUrl,
  workspaceId,
  token,
  path,
}: ChildEnvironmentOptions): Record<string, string> {
  return {
    MOLECULE_API_URL: apiUrl,
    MOLECULE_WORKSPACE_ID: workspaceId,
    ...(token !== undefined && { MOLECULE_WORKSPACE_TOKEN: token }),
    PATH: path ? `${BIN}${delimiter}${path}` : BIN,
  }
}
