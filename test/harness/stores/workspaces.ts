/** Workspaces with their folders and configs on a new SQLite store: real files, and a check of the backend that a test gives. */
import { silentLog } from '../../../src/log.ts'
import { createHomes } from '../../../src/workspaces/homes/homes.ts'
import { createWorkspaceConfigs, type WorkspaceConfigsOptions } from '../../../src/workspaces/workspace-configs.ts'
import { createWorkspaces } from '../../../src/workspaces/workspaces.ts'
import { openTestStore, type TestEnd } from './sqlite-store.ts'

export function openTestWorkspaces(t: TestEnd, check: WorkspaceConfigsOptions['check'] = async () => ({ ok: true })) {
  const opened = openTestStore(t)
  const { store, folder } = opened
  const homes = createHomes(folder)
  const configs = createWorkspaceConfigs({ store, homes, log: silentLog, check })
  return { ...opened, homes, configs, workspaces: createWorkspaces({ store, homes, configs }) }
}
