/**
 * Between the wire and ours: the bodies of `POST` and `PATCH` become input for the workspaces, and a workspace becomes the
 * view that the caller's role may see.
 */
import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { newWorkspaceSchema, workspaceChangeSchema, workspaceSchema } from '../../../api/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Json } from '../../../protocol/a2a.ts'
import { publicReason } from '../../../views/public-reason.ts'
import type { WorkspaceCard } from '../../../views/workspace-cards.ts'
import { hideSecrets, holdsHidden } from '../../../workspaces/hide-secrets.ts'
import { seesStatusText } from '../../../workspaces/may-talk.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import {
  HIDDEN_SECRET,
  type NewWorkspace,
  type Workspace,
  type WorkspaceChange,
  type WorkspaceLoad,
} from '../../../workspaces/workspace.ts'
import { seesConfig } from '../server/reach.ts'

/** The body of `POST /workspaces`. */
export function toNewWorkspace(body: z.output<typeof newWorkspaceSchema>): NewWorkspace {
  const { name, template, team, model, parent_id: parentId, permission, allow_duplicate: allowDuplicate } = body
  const fields = fromWire(body)
  for (const [key, value] of Object.entries(fields.runtimeConfig ?? {})) if (holdsHidden(value)) throw stillHidden(key)
  return withoutUndefined({ ...fields, name, template, team, model, parentId, permission, allowDuplicate })
}

/**
 * The body of `PATCH /workspaces/:id`. A setting that comes back as it was shown, with its secrets hidden, is unchanged.
 * Prevents that the mask is stored in place of the secret: a setting that is hidden and changed is refused.
 */
export function toWorkspaceChange(
  body: z.output<typeof workspaceChangeSchema>,
  stored: Readonly<Record<string, Json>>,
): WorkspaceChange {
  const isUnchanged = (key: string, value: Json) =>
    value === HIDDEN_SECRET || (stored[key] !== undefined && isDeepStrictEqual(value, hideSecrets(stored[key], key)))
  const { runtimeConfig: given, ...fields } = fromWire(body)
  const config = Object.entries(given ?? {}).filter(
    ([key, value]) => !holdsHidden(value) || !isUnchanged(key, value as Json),
  )
  const halfShown = config.find(([, value]) => holdsHidden(value))
  if (halfShown !== undefined) throw stillHidden(halfShown[0])
  const { name, model, parent_id: parentId, permission, allow_duplicate: allowDuplicate } = body
  return withoutUndefined({
    ...fields,
    name,
    model,
    parentId,
    permission,
    allowDuplicate,
    ...(given === undefined ? {} : { runtimeConfig: Object.fromEntries(config) }),
  })
}

function stillHidden(key: string): MoleculeError {
  const message = `runtime_config.${key} holds a secret as "${HIDDEN_SECRET}": send the secret itself, or leave the key out`
  return new MoleculeError('invalid_request', message, { details: { path: `runtime_config.${key}` } })
}

/** From the names of the wire to ours. */
function fromWire(
  body: Omit<z.infer<typeof workspaceChangeSchema>, 'name' | 'model' | 'parent_id' | 'permission' | 'allow_duplicate'>,
) {
  return {
    role: body.role,
    runtime: body.runtime,
    tier: body.tier,
    maxConcurrentTasks: body.max_concurrent_tasks,
    maxAttempts: body.max_attempts,
    workingDir: body.working_dir,
    // The address of a remote agent is its main setting, so it may stand at the top beside the runtime.
    runtimeConfig: body.url === undefined ? body.runtime_config : { ...body.runtime_config, url: body.url },
  }
}

export type WorkspaceView = z.output<typeof workspaceSchema>

/** Without a card in the answer to a change. */
export function viewWorkspace(workspace: Workspace & Partial<WorkspaceLoad>, card?: WorkspaceCard): WorkspaceView {
  return {
    id: workspace.id,
    name: workspace.name,
    role: workspace.role,
    runtime: workspace.runtime,
    status: workspace.status,
    status_reason: workspace.statusReason,
    limits: workspace.limits && [...workspace.limits],
    queue_depth: workspace.queueDepth,
    running: workspace.running,
    current_task: workspace.currentTask ?? null,
    current_since: instantOf(workspace.currentSinceMs),
    ...card,
    status_text: workspace.statusText?.text,
    status_text_at: instantOf(workspace.statusText?.atMs),
    model: workspace.model,
    parent_id: workspace.parentId,
    tier: workspace.tier,
    max_concurrent_tasks: workspace.maxConcurrentTasks,
    max_attempts: workspace.maxAttempts,
    working_dir: workspace.workingDir,
    permission: workspace.permission,
    team: workspace.team,
    runtime_config: hideSecrets(workspace.runtimeConfig) as WorkspaceView['runtime_config'],
    created_at: new Date(workspace.createdAtMs).toISOString(),
  }
}

const instantOf = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()

/** The view of a workspace that this token may see. */
export function viewWorkspaceFor(
  identity: Identity,
  workspace: Workspace & WorkspaceLoad,
  card: WorkspaceCard | undefined,
): WorkspaceView {
  const view = viewWorkspace(workspace, card)
  if (seesConfig(identity)) return view
  const shown = withoutConfig(view)
  if (identity.role === 'viewer') return shown
  // Other callers' messages are for people only: a program or a peer does not see what the workspace works on.
  const { status_text: text, status_text_at: at = null, ...rest } = shown
  const known = withoutWork(rest)
  return seesStatusText(identity, workspace.id) && text !== undefined
    ? { ...known, status_text: text, status_text_at: at }
    : known
}

function withoutWork(view: WorkspaceView): WorkspaceView {
  const { current_task: _task, current_since: _since, last_answered_at: _answered, ...rest } = view
  const { today: _today, needs_you: _needs, limits: _limits, ...known } = rest
  return known
}

/** For a viewer, a program and a peer: no settings, and no path in the reason. */
function withoutConfig(view: WorkspaceView): WorkspaceView {
  const { runtime_config: _config, working_dir: _folder, status_reason: reason, needs_you: needs, ...shown } = view
  return {
    ...shown,
    status_reason: reason && publicReason(reason),
    needs_you: needs && { count: needs.count, reason: publicReason(needs.reason) },
  }
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
}
