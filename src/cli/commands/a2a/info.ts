/** `a2a info`: the workspace that this process works for. */
import { MoleculeError } from '../../../errors.ts'
import type { Terminal } from '../../command-line.ts'
import { platformClientFor } from '../../platform/platform-access.ts'
import { workspaceTable } from '../../terminal/task-text.ts'

export async function info({ env, out }: Terminal): Promise<void> {
  const id = env['MOLECULE_WORKSPACE_ID']
  if (!id) {
    const message = 'MOLECULE_WORKSPACE_ID is not set, so this runs in no workspace; "a2a peers" lists all of them'
    throw new MoleculeError('bad_config', message)
  }
  out(workspaceTable([await platformClientFor(env).getWorkspace(id)]))
}
