/** Joins the parts of workspaces for `wire.ts`: folders, configs, briefs, lifecycle, upkeep. */
import type { Clock } from '../clock.ts'
import type { WorkspaceRoutesContext } from '../doors/http/routes/route.ts'
import type { Lease } from '../inbox/inbox.ts'
import type { LocalInbox } from '../inbox/local-inbox.ts'
import type { Log } from '../log.ts'
import type { Brief } from '../protocol/brief.ts'
import type { Store } from '../store/store.ts'
import { type ChildEnvironment, createBriefMaker } from '../workspaces/brief/brief-maker.ts'
import { withHistory } from '../workspaces/brief/history.ts'
import { withTurnLimit } from '../workspaces/brief/turn-limit.ts'
import { createWorkspaceConfigs } from '../workspaces/config/workspace-configs.ts'
import { createHomes } from '../workspaces/homes/homes.ts'
import { createWorkspaceLifecycle } from '../workspaces/lifecycle.ts'
import { createWorkspaceRegistry } from '../workspaces/registry.ts'
import type { Tokens } from '../workspaces/tokens.ts'
import { createWorkspaceUpkeep, type WorkspaceUpkeep } from '../workspaces/upkeep.ts'
import type { BackendCheck, BriefedBridge, Workspaces } from '../workspaces/workspace.ts'
import { createWorkspaceFiles } from '../workspaces/workspace-files.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'

export interface WireWorkspacesOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  readonly dataDir: string
  /** Variables about the platform for the processes of turns. */
  readonly childEnvironment?: ChildEnvironment
  /** Adds a note to the activity of a workspace; default: none is kept. */
  readonly addNote?: LocalInbox['activity']['addNote']
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<BackendCheck>
  /** True for a backend without a memory of its own, which gets the history; default: none. */
  readonly usesHistory?: (runtime: string) => boolean
  /** True for a backend whose turns cost money; default: none. */
  readonly isMetered?: (runtime: string) => boolean
}

/** Parts that are built after the workspaces, because they need the briefs. */
export interface DoorPartsOptions {
  readonly localInbox: LocalInbox
  readonly runtime: { retireBackend(workspaceId: string): void }
  readonly tokens: Pick<Tokens, 'list' | 'revoke' | 'revokeConversations'>
}

export interface WiredWorkspaces {
  readonly workspaces: Workspaces
  readonly brief: (lease: Lease) => Promise<Brief>
  readonly upkeep: WorkspaceUpkeep
  /** The parts that the HTTP door needs, once the runtime and the tokens exist. */
  createDoorParts(others: DoorPartsOptions): WorkspaceRoutesContext
}

export function wireWorkspaces(parts: WireWorkspacesOptions): WiredWorkspaces {
  const { store, clock, usesHistory = () => false, isMetered = () => false } = parts
  const homes = createHomes(parts.dataDir)
  const configs = createWorkspaceConfigs({ ...parts, homes })
  const briefing: (lease: Lease, bridge?: BriefedBridge) => Promise<Brief> = createBriefMaker({
    ...parts,
    homes,
    configs,
  })
  const brief = withTurnLimit(withHistory(briefing, { store, usesHistory }), { store, clock, isMetered })
  return {
    workspaces: createWorkspaces({ store, homes, configs }),
    brief,
    upkeep: createWorkspaceUpkeep({ ...parts, homes, configs }),
    createDoorParts: ({ localInbox, runtime, tokens }) => ({
      lifecycle: createWorkspaceLifecycle({
        ...{ store, homes, configs, clock },
        queues: localInbox.queues,
        retireBackend: runtime.retireBackend,
        async revokeTokens(workspaceId) {
          const own = (await tokens.list()).filter((token) => token.workspaceId === workspaceId)
          for (const { id } of own) await tokens.revoke(id)
          await tokens.revokeConversations(workspaceId)
        },
        revokeConversations: tokens.revokeConversations,
      }),
      registry: createWorkspaceRegistry(store, { hasBridge: localInbox.bridges.isConnected }),
      activity: localInbox.activity,
      pending: localInbox.pendingAsks,
      bridgeContext: { bridges: localInbox.bridges, brief },
      stories: localInbox.stories,
      usage: localInbox.usage,
      files: createWorkspaceFiles({ store, homes, configs }),
    }),
  }
}
