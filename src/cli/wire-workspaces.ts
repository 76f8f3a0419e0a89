/** The part of the parts list that has to do with workspaces: their folders, their briefs, and what is done with them. */
import type { Clock } from '../clock.ts'
import type { WorkspaceCare } from '../doors/http/app.ts'
import type { LocalInbox } from '../inbox/local.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createBriefing } from '../workspaces/brief.ts'
import { createConfigs } from '../workspaces/configs.ts'
import { createFiles } from '../workspaces/files.ts'
import { createHomes } from '../workspaces/homes.ts'
import { createLifecycle } from '../workspaces/lifecycle.ts'
import { createRegistry } from '../workspaces/registry.ts'
import type { Check } from '../workspaces/rows.ts'
import type { Tokens } from '../workspaces/tokens.ts'
import { createUpkeep, type Upkeep } from '../workspaces/upkeep.ts'
import type { Workspaces } from '../workspaces/workspace.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'

export interface WorkspaceParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  readonly dataDir: string
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<Check>
}

/** Parts that are built after the workspaces, or on their briefs. */
export interface OtherParts {
  readonly mail: LocalInbox
  readonly runtime: { retireBackend(workspaceId: string): void }
  readonly tokens: Pick<Tokens, 'list' | 'revoke'>
}

export interface WiredWorkspaces {
  readonly workspaces: Workspaces
  readonly brief: ReturnType<typeof createBriefing>
  readonly upkeep: Upkeep
  /** What needs the parts that are built on briefs. */
  careFor(others: OtherParts): WorkspaceCare
}

export function wireWorkspaces(parts: WorkspaceParts): WiredWorkspaces {
  const { store, clock, host } = parts
  const homes = createHomes(parts.dataDir)
  const configs = createConfigs({ ...parts, homes })
  return {
    workspaces: createWorkspaces({ store, homes, configs }),
    brief: createBriefing({ store, host, homes, configs }),
    upkeep: createUpkeep({ ...parts, homes, configs }),
    careFor: ({ mail, runtime, tokens }) => ({
      lifecycle: createLifecycle({
        ...{ store, homes, configs, clock },
        queues: mail.queues,
        retireBackend: runtime.retireBackend,
        async revokeTokens(workspaceId) {
          const own = (await tokens.list()).filter((token) => token.workspaceId === workspaceId)
          for (const { id } of own) await tokens.revoke(id)
        },
      }),
      registry: createRegistry(store),
      activity: mail.activity,
      files: createFiles({ store, homes, configs }),
    }),
  }
}
