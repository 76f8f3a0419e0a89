/**
 * A workspace on the wire: what `POST /workspaces` takes and what is shown of one. Wire words are snake_case. A field
 * nobody knows is refused by its name, because a typo that is silently dropped is found weeks later.
 */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { Json } from '../../../protocol/a2a.ts'
import { URL_CHARACTERS_MAX } from '../../../protocol/schemas.ts'
import {
  ATTEMPTS_MAX,
  NAME_CHARACTERS_MAX,
  type NewWorkspace,
  ROLE_CHARACTERS_MAX,
  SHORT_TEXT_CHARACTERS_MAX,
  SLOTS_MAX,
  type Workspace,
  type WorkspaceChange,
  type WorkspaceLoad,
} from '../../../workspaces/workspace.ts'
import { validateBody } from '../server/validate-body.ts'

const PATH_CHARACTERS_MAX = 4096

const word = z.string().trim().min(1).max(SHORT_TEXT_CHARACTERS_MAX)

export const newWorkspaceSchema = z.strictObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX),
  role: z.string().max(ROLE_CHARACTERS_MAX).optional(),
  runtime: word.optional(),
  model: word.optional(),
  parent_id: word.optional(),
  tier: z.union([z.literal(1), z.literal(2)], 'must be 1 or 2').optional(),
  max_concurrent_tasks: z.int().min(1).max(SLOTS_MAX).optional(),
  max_attempts: z.int().min(1).max(ATTEMPTS_MAX).optional(),
  working_dir: z.string().max(PATH_CHARACTERS_MAX).refine(isAbsolute, 'must be an absolute path').optional(),
  permission: z.enum(['ask', 'allowed_tools', 'bypass']).optional(),
  template: word.optional(),
  runtime_config: z.record(z.string(), z.json()).optional(),
  url: z.string().trim().min(1).max(URL_CHARACTERS_MAX).optional(),
})

/** What may be said again later; null takes the value away. */
export const workspaceChangeSchema = newWorkspaceSchema.omit({ template: true }).extend({
  name: newWorkspaceSchema.shape.name.optional(),
  model: word.nullish(),
  parent_id: word.nullish(),
})

/** The body of `POST /workspaces`; throws `invalid_request` naming the field. */
export function readNewWorkspace(body: unknown): NewWorkspace {
  const form = validateBody(newWorkspaceSchema, body, 'a workspace')
  const { name, template, model, parent_id: parentId } = form
  return withoutUndefined({ ...fromWire(form), name, template, model, parentId })
}

/** The body of `PATCH /workspaces/:id`. A secret sent back as it was shown is one that nobody changed. */
export function readWorkspaceChange(body: unknown): WorkspaceChange {
  const form = validateBody(workspaceChangeSchema, body, 'a workspace')
  const config = Object.entries(form.runtime_config ?? {}).filter(([, value]) => value !== HIDDEN)
  const halfShown = config.find(([, value]) => JSON.stringify(value).includes(JSON.stringify(HIDDEN)))
  if (halfShown !== undefined) throw stillHidden(halfShown[0])
  const { name, model, parent_id: parentId } = form
  return withoutUndefined({
    ...fromWire(form),
    ...{ name, model, parentId },
    ...(form.runtime_config === undefined ? {} : { runtimeConfig: Object.fromEntries(config) }),
  })
}

function stillHidden(key: string): MoleculeError {
  const message = `runtime_config.${key} holds a secret as "${HIDDEN}": send the secret itself, or leave the key out`
  return new MoleculeError('invalid_request', message, { details: { path: `runtime_config.${key}` } })
}

/** From the words of the wire to ours. */
function fromWire(form: Omit<z.infer<typeof workspaceChangeSchema>, 'name' | 'model' | 'parent_id'>) {
  return {
    role: form.role,
    runtime: form.runtime,
    tier: form.tier,
    maxConcurrentTasks: form.max_concurrent_tasks,
    maxAttempts: form.max_attempts,
    workingDir: form.working_dir,
    permission: form.permission,
    // A remote agent's address is what it is known by, so it may stand beside the runtime's name.
    runtimeConfig: form.url === undefined ? form.runtime_config : { ...form.runtime_config, url: form.url },
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

/** What a viewer, a program and a peer see: no settings. */
export function withoutConfig(view: WorkspaceView): WorkspaceView {
  const { runtime_config: _config, working_dir: _folder, ...shown } = view
  return shown
}

const SECRET_KEY = /token|key|secret|password|headers/i
const HIDDEN = '[hidden]'

/** Numbers and switches under such a key (`max_tokens: 4096`) are no secrets. */
function hideSecrets(value: Json, key = ''): Json {
  // Headers are named by whoever wrote them: which of them is a secret cannot be told.
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
