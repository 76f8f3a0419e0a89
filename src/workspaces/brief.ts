/** Where briefs are made: by this one function for the local runtime and for bridges alike. */
import { MoleculeError } from '../errors.ts'
import type { Brief } from '../protocol/brief.ts'
import { sessionToken } from '../sessions/sessions.ts'
import type { Store } from '../store/store.ts'
import { backendOptions } from './options.ts'
import { find } from './workspaces.ts'

export interface BriefOptions {
  readonly store: Store
  readonly host: string
}

export function createBriefing({ store, host }: BriefOptions) {
  return (key: { workspaceId: string; conversationId: string }): Promise<Brief> =>
    store.read(function* () {
      const workspace = yield* find(key.workspaceId)
      if (workspace === undefined) throw new MoleculeError('bad_config', `there is no workspace ${key.workspaceId}`)
      const token = yield* sessionToken(host, key)
      const { runtime, runtimeConfig, role, workingDir, model, maxAttempts } = workspace
      return {
        runtime,
        options: backendOptions(runtimeConfig),
        systemPrompt: role,
        workingDir,
        maxAttempts,
        env: {},
        ...(token !== undefined && { sessionToken: token }),
        ...(model !== undefined && { model }),
      }
    })
}
