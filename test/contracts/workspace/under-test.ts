/** Workspaces on a store under test, with their folders, and the inbox of their messages. */
import assert from 'node:assert/strict'
import { systemClock } from '../../../src/clock.ts'
import { silentLog } from '../../../src/log.ts'
import { createHomes, type Homes } from '../../../src/workspaces/homes/homes.ts'
import { createWorkspaceLifecycle } from '../../../src/workspaces/lifecycle.ts'
import { createWorkspaceRegistry, type WorkspaceRegistry } from '../../../src/workspaces/registry.ts'
import type { BackendCheck, NewWorkspace, WorkspaceLifecycle, Workspaces } from '../../../src/workspaces/workspace.ts'
import { createWorkspaceConfigs } from '../../../src/workspaces/workspace-configs.ts'
import { createWorkspaces } from '../../../src/workspaces/workspaces.ts'
import type { InboxHarness } from '../inbox/harness.ts'

export interface WorkspacesUnderTest {
  readonly inbox: InboxHarness
  readonly homes: Homes
  readonly workspaces: Workspaces
  readonly lifecycle: WorkspaceLifecycle
  readonly registry: WorkspaceRegistry
  /** The result of the next checks of a backend. */
  check: BackendCheck
  make(input?: Partial<NewWorkspace>): Promise<string>
  /** The workspace as the lookup and the list show it, which agree. */
  seen(id: string): Promise<NonNullable<Awaited<ReturnType<Workspaces['get']>>>>
}

export function openWorkspaces(inbox: InboxHarness, folder: string, check: () => Promise<BackendCheck>) {
  const { store } = inbox
  const homes = createHomes(folder)
  const configs = createWorkspaceConfigs({ store, homes, log: silentLog, check })
  const workspaces = createWorkspaces({ store, homes, configs })
  const lifecycle = createWorkspaceLifecycle({
    store,
    homes,
    configs,
    queues: inbox.local.queues,
    clock: systemClock,
    revokeTokens: async () => undefined,
    revokeConversations: async () => undefined,
    retireBackend: () => undefined,
  })
  return {
    homes,
    workspaces,
    lifecycle,
    registry: createWorkspaceRegistry(store),
    make: async (input: Partial<NewWorkspace> = {}) =>
      (await workspaces.create({ name: 'n', runtime: 'mock', ...input })).id,
    async seen(id: string) {
      const found = await workspaces.get(id)
      const listed = (await workspaces.all()).find((one) => one.id === id)
      assert.deepEqual(listed, found)
      return found ?? assert.fail(`there is no workspace ${id}`)
    },
  }
}
