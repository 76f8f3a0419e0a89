/** Joins the parts of workspaces for `wire.ts`: folders, configs, briefs, lifecycle, upkeep. */
import type { Clock } from '../clock.ts'
import { pairingNeeds } from '../doors/chat/pairing-needs.ts'
import { createPairings } from '../doors/chat/store/pairings.ts'
import { scheduleNeeds } from '../doors/clock/schedule-needs.ts'
import type { WorkspaceRoutesContext } from '../doors/http/routes/route.ts'
import { createNeedsYou } from '../doors/needs-you.ts'
import { createWorkspaceLogs } from '../doors/workspace-logs.ts'
import type { LocalInbox } from '../inbox/local/local-inbox.ts'
import type { Log } from '../log.ts'
import type { RuntimeOptions } from '../runtime/runtime.ts'
import type { Store } from '../store/store.ts'
import { type ChildEnvironment, createBriefMaker } from '../workspaces/brief/brief-maker.ts'
import { budgetStep } from '../workspaces/brief/budget-check.ts'
import { earlierConversationStep } from '../workspaces/brief/earlier-conversation.ts'
import { historyStep } from '../workspaces/brief/history.ts'
import { createMakeBrief, type MakeBrief } from '../workspaces/brief/make-brief.ts'
import { systemPromptStep } from '../workspaces/brief/system-prompt.ts'
import { turnLimitStep } from '../workspaces/brief/turn-limit.ts'
import { createWorkspaceConfigs } from '../workspaces/config/workspace-configs.ts'
import { createHomes } from '../workspaces/homes/homes.ts'
import { createWorkspaceLifecycle } from '../workspaces/lifecycle.ts'
import { createLimits } from '../workspaces/limits.ts'
import { createLogins, type Logins, type LoginsOptions } from '../workspaces/logins.ts'
import { createMemories } from '../workspaces/memories.ts'
import { recallStep } from '../workspaces/memory/recall.ts'
import { createRecoveries } from '../workspaces/recoveries.ts'
import { createWorkspaceRegistry } from '../workspaces/registry.ts'
import { createSchedules } from '../workspaces/schedules.ts'
import type { Tokens } from '../workspaces/tokens.ts'
import { createWorkspaceUpkeep, type WorkspaceUpkeep } from '../workspaces/upkeep.ts'
import type { BackendCheck, Workspaces } from '../workspaces/workspace.ts'
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
  /** Lets the messages that wait for a limit of the workspace look again; default: none waits. */
  readonly limitsChanged?: (workspaceId: string) => Promise<void>
  /** Why a turn must wait for a budget; default: there are no budgets. */
  readonly checkBudget?: LocalInbox['budgets']['check']
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<BackendCheck>
  /** What variables and files say about the log-in of a backend's agent; default: nothing. */
  readonly checkLogin?: LoginsOptions['check']
  /** True for a backend without a memory of its own, which gets the history; default: none. */
  readonly usesHistory?: (runtime: string) => boolean
  /** True for a backend whose agent keeps sessions of its own; default: none. */
  readonly keepsSessions?: (runtime: string) => boolean
  /** True for a backend that has a use for the system prompt and the memories; default: none. */
  readonly readsPrompt?: (runtime: string) => boolean
  /** True for a backend whose turns cost money; default: none. */
  readonly isMetered?: (runtime: string) => boolean
  /** True for an agent that can run commands; default: none. */
  readonly runsCommands?: (runtime: string) => boolean
  /** True for a program of the owner that gets the brief beside its message; default: none. */
  readonly readsBrief?: (runtime: string) => boolean
}

/** Parts that are built after the workspaces, because they need the briefs. */
export interface DoorPartsOptions {
  readonly localInbox: LocalInbox
  readonly runtime: { retireBackend(workspaceId: string): void }
  readonly tokens: Pick<Tokens, 'list' | 'revoke' | 'revokeConversations'>
}

export interface WiredWorkspaces {
  readonly workspaces: Workspaces
  readonly brief: MakeBrief
  readonly upkeep: WorkspaceUpkeep
  /** A turn of a hosted workspace has ended. */
  readonly onTurnEnd: NonNullable<RuntimeOptions['onTurnEnd']>
  /** The parts that the HTTP door needs, once the runtime and the tokens exist. */
  createDoorParts(
    others: DoorPartsOptions,
  ): Omit<WorkspaceRoutesContext, 'clockDoor' | 'agents' | 'chat' | 'knownNames'>
}

const NONE = () => false

export function wireWorkspaces(parts: WireWorkspacesOptions): WiredWorkspaces {
  const { store, clock } = parts
  const { usesHistory = NONE, keepsSessions = NONE, isMetered = NONE, runsCommands = NONE } = parts
  const { readsBrief = NONE, readsPrompt = NONE } = parts
  const homes = createHomes(parts.dataDir)
  const configs = createWorkspaceConfigs({ ...parts, homes })
  const logins = createLogins({ ...parts, homes, check: parts.checkLogin ?? (() => undefined) })
  const limits = createLimits(parts)
  const recoveries = createRecoveries({ ...parts, configs })
  const workspaces = createWorkspaces({ store, homes, configs })
  const memories = createMemories({ store, find: workspaces.get })
  const schedules = createSchedules({ store, nowMs: () => clock.nowMs() })
  const brief = createMakeBrief({
    start: createBriefMaker({ ...parts, homes, configs }),
    systemPrompt: systemPromptStep({ store, homes, readsPrompt, runsCommands, readsBrief }),
    history: historyStep({ store, usesHistory }),
    earlierConversation: earlierConversationStep({ store, keepsSessions }),
    recall: recallStep({ memories, readsPrompt, readsBrief }),
    budget: parts.checkBudget && budgetStep(parts.checkBudget),
    turnLimit: turnLimitStep({ store, clock, isMetered }),
  })
  return {
    workspaces: withLoginCheck(workspaces, logins),
    onTurnEnd(id, outcome, found) {
      logins.turnEnded(id, outcome)
      recoveries.turnEnded(id, outcome)
      if (found !== undefined) limits.turnEnded(id, found)
    },
    brief,
    upkeep: createWorkspaceUpkeep({ ...parts, homes, configs, logins, recoveries, memories }),
    createDoorParts: ({ localInbox, runtime, tokens }) => ({
      lifecycle: createWorkspaceLifecycle({
        refreshLogin: logins.refresh,
        ...{ store, homes, configs, clock },
        queues: localInbox.queues,
        retireBackend: runtime.retireBackend,
        revokeTokens: (workspaceId) => revokeTokens(tokens, workspaceId),
        revokeConversations: tokens.revokeConversations,
      }),
      registry: createWorkspaceRegistry(store, {
        hasBridge: localInbox.bridges.isConnected,
        onWorking: localInbox.queues.retryFailed,
      }),
      store: localInbox.store,
      activity: localInbox.activity,
      logs: createWorkspaceLogs(localInbox),
      pending: localInbox.pendingAsks,
      rules: localInbox.rules,
      budgets: localInbox.budgets,
      needsYou: createNeedsYou(
        [...localInbox.needSources, pairingNeeds(createPairings(store)), scheduleNeeds(schedules)],
        workspaces,
      ),
      deliveries: localInbox.deliveries,
      damagedReplies: localInbox.damagedReplies,
      bridgeContext: { bridges: localInbox.bridges, brief },
      memories,
      schedules,
      files: createWorkspaceFiles({ store, homes, configs }),
    }),
  }
}

async function revokeTokens(tokens: DoorPartsOptions['tokens'], workspaceId: string): Promise<void> {
  const own = (await tokens.list()).filter((token) => token.workspaceId === workspaceId)
  for (const { id } of own) await tokens.revoke(id)
  await tokens.revokeConversations(workspaceId)
}

/** A new workspace shows at once that its agent is not logged in. */
function withLoginCheck(workspaces: Workspaces, logins: Logins): Workspaces {
  return {
    ...workspaces,
    async create(input) {
      const created = await workspaces.create(input)
      await logins.refresh(created.id)
      return { ...created, ...(await workspaces.get(created.id)) }
    },
  }
}
