/** Joins the parts of workspaces for `wire.ts`: folders, configs, briefs, lifecycle, upkeep. */
import type { Clock } from '../../clock.ts'
import type { LocalInbox } from '../../inbox/local/local-inbox.ts'
import type { WorkspaceQueues } from '../../inbox/queues.ts'
import type { Log } from '../../log.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import type { Store } from '../../store/store.ts'
import { type ChildEnvironment, createBriefMaker } from '../../workspaces/brief/brief-maker.ts'
import { budgetStep } from '../../workspaces/brief/budget-check.ts'
import { earlierConversationStep } from '../../workspaces/brief/earlier-conversation.ts'
import { historyStep } from '../../workspaces/brief/history.ts'
import { createMakeBrief, type MakeBrief } from '../../workspaces/brief/make-brief.ts'
import { recallStep } from '../../workspaces/brief/recall.ts'
import { systemPromptStep } from '../../workspaces/brief/system-prompt.ts'
import { turnLimitStep } from '../../workspaces/brief/turn-limit.ts'
import { createHomes } from '../../workspaces/homes/homes.ts'
import { createWorkspaceLifecycle } from '../../workspaces/lifecycle.ts'
import { createLimits } from '../../workspaces/limits.ts'
import { createLogins, type Logins, type LoginsOptions } from '../../workspaces/logins.ts'
import { createMemories, type Memories } from '../../workspaces/memories.ts'
import { createRecoveries } from '../../workspaces/recoveries.ts'
import { createWorkspaceRegistry, type WorkspaceRegistry } from '../../workspaces/registry.ts'
import { createSchedules, type Schedules } from '../../workspaces/schedules.ts'
import type { Tokens } from '../../workspaces/tokens.ts'
import { createWorkspaceUpkeep, type WorkspaceUpkeep } from '../../workspaces/upkeep.ts'
import type { BackendCheck, WorkspaceLifecycle, Workspaces } from '../../workspaces/workspace.ts'
import { createWorkspaceConfigs } from '../../workspaces/workspace-configs.ts'
import { createWorkspaceFiles, type WorkspaceFiles } from '../../workspaces/workspace-files.ts'
import { createWorkspaces } from '../../workspaces/workspaces.ts'
import type { BackendTraits } from './wire-backends.ts'

export interface WireWorkspacesOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  readonly dataDir: string
  readonly inbox: LocalInbox
  readonly backends: {
    readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<BackendCheck>
    /** What variables and files say about the log-in of a backend's agent; default: nothing. */
    readonly checkLogin?: LoginsOptions['check']
    /** Default: no backend has any. */
    readonly traits?: Partial<BackendTraits>
  }
  /** Variables about the platform for the processes of turns. */
  readonly childEnvironment?: ChildEnvironment
}

export interface WiredWorkspaces {
  readonly workspaces: Workspaces
  readonly registry: WorkspaceRegistry
  readonly files: WorkspaceFiles
  readonly memories: Memories
  readonly schedules: Schedules
  readonly brief: MakeBrief
  readonly upkeep: WorkspaceUpkeep
  /** A turn of a hosted workspace has ended. */
  readonly onTurnEnd: NonNullable<RuntimeOptions['onTurnEnd']>
  /** Built after the runtime, which needs the briefs. */
  createLifecycle(options: LifecycleParts): WorkspaceLifecycle
}

export interface LifecycleParts {
  readonly queues: WorkspaceQueues
  /** The next turn of the workspace gets a new backend. */
  readonly retireBackend: (workspaceId: string) => void
  readonly tokens: Pick<Tokens, 'revokeAll' | 'revokeConversations'>
}

const NONE = () => false

export function wireWorkspaces(options: WireWorkspacesOptions): WiredWorkspaces {
  const { store, clock, log, host, dataDir, inbox, backends, childEnvironment } = options
  const { check, checkLogin, traits = {} } = backends
  const { readsPrompt = NONE, readsBrief = NONE, runsCommands = NONE, usesHistory = NONE } = traits
  const { keepsSessions = NONE, isMetered = NONE } = traits
  const { addNote } = inbox.activity
  const homes = createHomes(dataDir)
  const { limitsChanged } = inbox.queues
  const configs = createWorkspaceConfigs({ store, homes, check, log, addNote, limitsChanged })
  const logins = createLogins({ store, clock, log, homes, check: checkLogin ?? (() => undefined) })
  const limits = createLimits({ store, log })
  const recoveries = createRecoveries({ store, configs, clock, log })
  const workspaces = withLoginCheck(createWorkspaces({ store, homes, configs }), logins)
  const memories = createMemories({ store, find: workspaces.get })
  const schedules = createSchedules({ store, nowMs: () => clock.nowMs() })
  return {
    workspaces,
    registry: createWorkspaceRegistry(store, {
      hasBridge: inbox.bridges.isConnected,
      onWorking: inbox.queues.retryFailed,
    }),
    files: createWorkspaceFiles({ store, homes, configs }),
    memories,
    schedules,
    onTurnEnd(id, outcome, found) {
      logins.turnEnded(id, outcome)
      recoveries.turnEnded(id, outcome)
      if (found !== undefined) limits.turnEnded(id, found)
    },
    brief: createMakeBrief({
      start: createBriefMaker({ store, host, homes, configs, childEnvironment }),
      systemPrompt: systemPromptStep({ store, homes, readsPrompt, runsCommands, readsBrief }),
      history: historyStep({ store, usesHistory }),
      earlierConversation: earlierConversationStep({ store, keepsSessions }),
      recall: recallStep({ memories, readsPrompt, readsBrief }),
      budget: budgetStep(inbox.budgets.check),
      turnLimit: turnLimitStep({ store, clock, isMetered }),
    }),
    upkeep: createWorkspaceUpkeep({ store, homes, configs, logins, recoveries, memories, clock, log }),
    createLifecycle: ({ queues, retireBackend, tokens }) =>
      createWorkspaceLifecycle({
        store,
        homes,
        configs,
        queues,
        clock,
        retireBackend,
        refreshLogin: logins.refresh,
        revokeTokens: tokens.revokeAll,
        revokeConversations: tokens.revokeConversations,
      }),
  }
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
