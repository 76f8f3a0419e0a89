/**
 * What the children of turns are told of the platform: where it is, whom they work for, a token of their conversation
 * alone, and where `a2a` and `molecule` are. The same for the platform's own turns and for those of a bridge.
 */
import { delimiter, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const BIN = resolve(fileURLToPath(import.meta.url), '../../../bin')

export interface ChildEnvironmentOptions {
  readonly apiUrl: string
  readonly workspaceId: string
  /** Absent where the platform gave none. */
  readonly token: string | undefined
  /** As this process inherited it. */
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
