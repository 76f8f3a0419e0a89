/**
 * Makes the changes of a plan, one after the other. Each step can be repeated: after a failure the next run plans only
 * what is still missing.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { changeWorkspace, createWorkspace } from '../../client/workspaces.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { TeamPlan, WorkspacePlan, WorkspaceUpdate } from './team-plan.ts'

/** A workspace that the plan has created. */
export interface CreatedMember {
  readonly name: string
  readonly id: string
  /** Only of an external workspace: the command that runs it, with its token, which is never shown again. */
  readonly connect?: string
}

export async function applyPlan({ changes }: TeamPlan, client: PlatformClient): Promise<CreatedMember[]> {
  const created: CreatedMember[] = []
  for (const [done, change] of changes.entries()) {
    try {
      await makeChange(change, client, created)
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      const made = `${done} of ${changes.length} changes are made; run the command again to continue`
      // What the file says was refused, not what was typed.
      const code = error.code === 'invalid_request' ? 'bad_config' : error.code
      throw new MoleculeError(code, `"${change.name}": ${error.message}; ${made}`, { cause: error })
    }
  }
  return created
}

async function makeChange(change: WorkspacePlan, client: PlatformClient, created: CreatedMember[]): Promise<void> {
  if (change.action === 'delete' && change.kind === 'schedule') {
    return await client.call('DELETE /schedules/{schedule}', { schedule: change.id })
  }
  if (change.action === 'delete') {
    await client.call('DELETE /workspaces/{id}', { id: change.id, confirm: change.id })
    return
  }
  const id = await writeSettings(change, client, created)
  for (const { file, text } of change.prompts) {
    if (text === null) await client.call('DELETE /workspaces/{id}/files/{+path}', { id, path: file })
    else await client.call('PUT /workspaces/{id}/files/{+path}', { id, path: file, body: text })
  }
  for (const { id: schedule, body } of change.schedules) {
    if (schedule === undefined) await client.call('POST /workspaces/{id}/schedules', { id, body })
    else await client.call('PATCH /schedules/{schedule}', { schedule, body })
  }
}

/** The id of the created or changed workspace. */
async function writeSettings(
  update: WorkspaceUpdate,
  client: PlatformClient,
  created: CreatedMember[],
): Promise<string> {
  const { id, name, body } = update
  const parent = parentOf(update, created)
  if (id === undefined) {
    const workspace = await createWorkspace(client, {
      ...body,
      name,
      ...(typeof parent === 'string' && { parent_id: parent }),
    })
    const { connect } = workspace
    created.push({ name, id: workspace.id, ...(typeof connect === 'string' && { connect }) })
    return workspace.id
  }
  const change = { ...body, ...(parent !== undefined && { parent_id: parent }) }
  if (Object.keys(change).length > 0) await changeWorkspace(client, id, change)
  return id
}

/** A parent that did not exist was created before its children. */
function parentOf({ parent }: WorkspaceUpdate, created: readonly CreatedMember[]): string | null | undefined {
  if (parent === undefined || parent === null) return parent
  return 'id' in parent ? parent.id : created.find(({ name }) => name === parent.name)?.id
}
