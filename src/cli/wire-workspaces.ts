/** The part of the parts list that has to do with workspaces: their folders, their briefs, and what is done with them. */
import type { Clock } from '../clock.ts'
import type { WorkspaceCare } from '../doors/http/app.ts'
import type { Lease } from '../inbox/inbox.ts'
import type { LocalInbox } from '../inbox/local.ts'
import type { Log } from '../log.ts'
import type { Brief } from '../protocol/brief.ts'
import type { Store } from '../store/store.ts'
import { type BriefedBridge, createBriefing } from '../workspaces/brief.ts'
import { createConfigs } from '../workspaces/configs.ts'
import { createFiles } from '../workspaces/files.ts'
import { withHistory } from '../workspaces/history.ts'
import { createHomes } from '../workspaces/homes.ts'
import { createLifecycle } from '../workspaces/lifecycle.ts'
import { createRegistry } from '../workspaces/registry.ts'
import type { Check } from '../workspaces/rows.ts'
import type { Tokens } from '../workspaces/tokens.ts'
import { withTurnLimit } from '../workspaces/turn-limit.ts'
import { createUpkeep, type Upkeep } from '../workspaces/upkeep.ts'
import type { Workspaces } from '../workspaces/workspace.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'

export interface WorkspaceParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  readonly dataDir: string
  /** What the children of turns are told of the platform. */
  readonly surroundings?: NonNullable<Parameters<typeof createBriefing>[0]['surroundings']>
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<Check>
  /** Which backends have no memory of their own; none where unset. */
  readonly usesHistory?: (runtime: string) => boolean
  /** Which backends ask a model that is paid for; none where unset. */
  readonly isMetered?: (runtime: string) => boolean
}

/** Parts that are built after the workspaces, or on their briefs. */
export interface OtherParts {
  readonly mail: LocalInbox
  readonly runtime: { retireBackend(workspaceId: string): void }
  readonly tokens: Pick<Tokens, 'list' | 'revoke'>
}

export interface WiredWorkspaces {
  readonly workspaces: Workspaces
  readonly brief: (lease: Lease) => Promise<Brief>
  readonly upkeep: Upkeep
  /** What needs the parts that are built on briefs. */
  careFor(others: OtherParts): WorkspaceCare
}

export function wireWorkspaces(parts: WorkspaceParts): WiredWorkspaces {
  const { store, clock, usesHistory = () => false, isMetered = () => false } = parts
  const homes = createHomes(parts.dataDir)
  const configs = createConfigs({ ...parts, homes })
  const briefing: (lease: Lease, bridge?: BriefedBridge) => Promise<Brief> = createBriefing({
    ...parts,
    homes,
    configs,
  })
  const brief = withTurnLimit(withHistory(briefing, { store, usesHistory }), { store, clock, isMetered })
  return {
    workspaces: createWorkspaces({ store, homes, configs }),
    brief,
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
      pending: mail.pending,
      bridgeDesk: { bridges: mail.bridges, brief },
      stories: mail.stories,
      usage: mail.usage,
      files: createFiles({ store, homes, configs }),
    }),
  }
}
