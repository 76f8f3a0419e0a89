/** `a2a peers` and `a2a info`: the other workspaces, and the workspace that this process works for, one a line. */
import type { WorkspaceSummary } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { platformClientFor } from '../../platform/platform-access.ts'
import { alignColumns } from '../../terminal/output.ts'
import { workspaceStatusText } from '../../terminal/task-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export async function peers({ env, out }: Terminal): Promise<void> {
  const workspaces = await listWorkspaces(platformClientFor(env))
  const others = workspaces.filter(({ id }) => id !== env['MOLECULE_WORKSPACE_ID'])
  out(others.length === 0 ? 'There are no other workspaces.\n' : workspaceTable(others))
}

export async function info({ env, out }: Terminal): Promise<void> {
  const id = env['MOLECULE_WORKSPACE_ID']
  if (!id) {
    const message =
      'MOLECULE_WORKSPACE_ID is not set, so this process works for no workspace; "a2a peers" lists them all'
    throw new MoleculeError('bad_config', message)
  }
  out(workspaceTable([await platformClientFor(env).call('GET /workspaces/{id}', { id })]))
}

/** Columns: name, id, status, role. */
function workspaceTable(workspaces: readonly WorkspaceSummary[]): string {
  const rows = workspaces.map(({ name, id, status, status_reason: reason, role }) => [
    name,
    id,
    reason ? `${workspaceStatusText(status)} (${reason})` : workspaceStatusText(status),
    role,
  ])
  return alignColumns(rows)
}
