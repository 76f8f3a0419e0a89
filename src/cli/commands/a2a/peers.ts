/** `a2a peers`: the workspaces that can be asked, one a line, the caller's own left out. */
import type { Terminal } from '../../command-line.ts'
import { platformClientFor } from '../../platform/platform-access.ts'
import { workspaceTable } from '../../terminal/task-text.ts'

export async function peers({ env, out }: Terminal): Promise<void> {
  const workspaces = await platformClientFor(env).listWorkspaces()
  const others = workspaces.filter(({ id }) => id !== env['MOLECULE_WORKSPACE_ID'])
  out(others.length === 0 ? 'There are no other workspaces.\n' : workspaceTable(others))
}
