/**
 * A workspace on the wire: the bodies of `POST` and `PATCH`, and the view that each role gets. Wire names are
 * snake_case. An unknown field is refused by name, because a typo that is silently dropped is found weeks later.
 */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { Json } from '../../../protocol/a2a.ts'
import { URL_CHARACTERS_MAX } from '../../../protocol/schemas.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import {
  ATTEMPTS_MAX,
  DEFAULT_TIER,
  isPlainLine,
  NAME_CHARACTERS_MAX,
  type NewWorkspace,
  NO_SANDBOX_REASON,
  PLAIN_LINE_REASON,
  ROLE_CHARACTERS_MAX,
  SANDBOX_TIER,
  SHORT_TEXT_CHARACTERS_MAX,
  SLOTS_MAX,
  type Workspace,
  type WorkspaceChange,
  type WorkspaceLoad,
} from '../../../workspaces/workspace.ts'
import { publicReason } from '../server/public-reason.ts'
import { seesConfig } from '../server/reach.ts'

const PATH_CHARACTERS_MAX = 4096

const shortText = z.string().trim().min(1).max(SHORT_TEXT_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON)

export const newWorkspaceSchema = z.strictObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON),
  role: z.string().max(ROLE_CHARACTERS_MAX).optional(),
  runtime: shortText.optional(),
  model: shortText.optional(),
  parent_id: shortText.optional(),
  tier: z
    .literal(DEFAULT_TIER, { error: ({ input }) => (input === SANDBOX_TIER ? NO_SANDBOX_REASON : 'must be 2') })
    .optional(),
  max_concurrent_tasks: z.int().min(1).max(SLOTS_MAX).optional(),
  max_attempts: z.int().min(1).max(ATTEMPTS_MAX).optional(),
  working_dir: z.string().max(PATH_CHARACTERS_MAX).refine(isAbsolute, 'must be an absolute path').optional(),
  permission: z.enum(['ask', 'allowed_tools', 'bypass']).optional(),
  template: shortText.optional(),
  runtime_config: z.record(z.string(), z.json()).optional(),
  url: z.string().trim().min(1).max(URL_CHARACTERS_MAX).optional(),
})

/** The fields that may be changed later; null removes the value. */
export const workspaceChangeSchema = newWorkspaceSchema.omit({ template: true }).extend({
  name: newWorkspaceSchema.shape.name.optional(),
  model: shortText.nullish(),
  parent_id: shortText.nullish(),
})

/** The body of `POST /workspaces`. */
export function toNewWorkspace(body: z.output<typeof newWorkspaceSchema>): NewWorkspace {
  const { name, template, model, parent_id: parentId } = body
  return withoutUndefined({ ...fromWire(body), name, template, model, parentId })
}

/** The body of `PATCH /workspaces/:id`. A secret that comes back as it was shown is unchanged. */
export function toWorkspaceChange(body: z.output<typeof workspaceChangeSchema>): WorkspaceChange {
  const config = Object.entries(body.runtime_config ?? {}).filter(([, value]) => value !== HIDDEN)
  const halfShown = config.find(([, value]) => JSON.stringify(value).includes(JSON.stringify(HIDDEN)))
  if (halfShown !== undefined) throw stillHidden(halfShown[0])
  const { name, model, parent_id: parentId } = body
  return withoutUndefined({
    ...fromWire(body),
    ...{ name, model, parentId },
    ...(body.runtime_config === undefined ? {} : { runtimeConfig: Object.fromEntries(config) }),
  })
}

function stillHidden(key: string): MoleculeError {
  const message = `runtime_config.${key} holds a secret as "${HIDDEN}": send the secret itself, or leave the key out`
  return new MoleculeError('invalid_request', message, { details: { path: `runtime_config.${key}` } })
}

/** From the names of the wire to ours. */
function fromWire(body: Omit<z.infer<typeof workspaceChangeSchema>, 'name' | 'model' | 'parent_id'>) {
  return {
    role: body.role,
    runtime: body.runtime,
    tier: body.tier,
    maxConcurrentTasks: body.max_concurrent_tasks,
    maxAttempts: body.max_attempts,
    workingDir: body.working_dir,
    permission: body.permission,
    // The address of a remote agent is its main setting, so it may stand at the top beside the runtime.
    runtimeConfig: body.url === undefined ? body.runtime_config : { ...body.runtime_config, url: body.url },
  }
}

export type WorkspaceView = Readonly<Record<string, Json>>

export function viewWorkspace(workspace: Workspace & Partial<WorkspaceLoad>): WorkspaceView {
  return withoutUndefined({
    id: workspace.id,
    name: workspace.name,
    role: workspace.role,
    runtime: workspace.runtime,
    status: workspace.status,
    status_reason: workspace.statusReason,
    queue_depth: workspace.queueDepth,
    running: workspace.running,
    current_task: workspace.currentTask ?? null,
    status_text: workspace.statusText?.text,
    status_text_at: workspace.statusText && new Date(workspace.statusText.atMs).toISOString(),
    model: workspace.model,
    parent_id: workspace.parentId,
    tier: workspace.tier,
    max_concurrent_tasks: workspace.maxConcurrentTasks,
    max_attempts: workspace.maxAttempts,
    working_dir: workspace.workingDir,
    permission: workspace.permission,
    runtime_config: hideSecrets(workspace.runtimeConfig),
    created_at: new Date(workspace.createdAtMs).toISOString(),
  }) as WorkspaceView
}

/** The view of a workspace that this token may see. */
export function viewWorkspaceFor(identity: Identity, workspace: Workspace & WorkspaceLoad): WorkspaceView {
  const view = viewWorkspace(workspace)
  if (seesConfig(identity)) return view
  const shown = withoutConfig(view)
  if (identity.role === 'viewer') return shown
  // Other callers' messages are for people only: a program or a peer does not see what the workspace works on.
  const { current_task: _task, status_text: text, status_text_at: at, ...known } = shown
  // A workspace may read its own status line.
  return identity.workspaceId === workspace.id && text !== undefined
    ? { ...known, status_text: text, status_text_at: at ?? null }
    : known
}

/** For a viewer, a program and a peer: no settings, and no path in the reason. */
function withoutConfig(view: WorkspaceView): WorkspaceView {
  const { runtime_config: _config, working_dir: _folder, status_reason: reason, ...shown } = view
  return typeof reason === 'string' ? { ...shown, status_reason: publicReason(reason) } : shown
}

const SECRET_KEY = /token|key|secret|password|headers/i
const HIDDEN = '[hidden]'

/** Numbers and booleans under such a key (`max_tokens: 4096`) are not secrets. */
function hideSecrets(value: Json, key = ''): Json {
  // A header has any name its author chose, so a secret one cannot be recognised: hide them all.
  if (key === 'headers' && value !== null && value !== '') return HIDDEN
  if (Array.isArray(value)) return value.map((item) => hideSecrets(item, key))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hideSecrets(item, name)]))
  }
  return typeof value === 'string' && value !== '' && SECRET_KEY.test(key) ? HIDDEN : value
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
}
