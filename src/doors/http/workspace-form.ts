/**
 * A workspace on the wire: what `POST /workspaces` takes and what is shown of one. Wire words are snake_case. A field
 * nobody knows is refused by its name, because a typo that is silently dropped is found weeks later.
 */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { MoleculeError } from '../../errors.ts'
import type { Json } from '../../protocol/a2a.ts'
import type { NewWorkspace, Workspace, WorkspaceLoad } from '../../workspaces/workspace.ts'

const NAME_CHARACTERS_MAX = 100
const ROLE_CHARACTERS_MAX = 2000
const WORD_CHARACTERS_MAX = 200
const PATH_CHARACTERS_MAX = 4096

const word = z.string().trim().min(1).max(WORD_CHARACTERS_MAX)

const newWorkspace = z.strictObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX),
  role: z.string().max(ROLE_CHARACTERS_MAX).optional(),
  runtime: word.optional(),
  model: word.optional(),
  parent_id: word.optional(),
  tier: z.union([z.literal(1), z.literal(2)], 'must be 1 or 2').optional(),
  max_concurrent_tasks: z.int().min(1).max(1000).optional(),
  max_attempts: z.int().min(1).max(100).optional(),
  working_dir: z.string().max(PATH_CHARACTERS_MAX).refine(isAbsolute, 'must be an absolute path').optional(),
  runtime_config: z.record(z.string(), z.json()).optional(),
})

/** The body of `POST /workspaces`; throws `invalid_request` naming the field. */
export function readNewWorkspace(body: unknown): NewWorkspace {
  const result = newWorkspace.safeParse(body)
  if (!result.success) throw refused(result.error)
  const form = result.data
  const input = {
    name: form.name,
    role: form.role,
    runtime: form.runtime,
    model: form.model,
    parentId: form.parent_id,
    tier: form.tier,
    maxConcurrentTasks: form.max_concurrent_tasks,
    maxAttempts: form.max_attempts,
    workingDir: form.working_dir,
    runtimeConfig: form.runtime_config,
  }
  return withoutUndefined(input)
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
    model: workspace.model,
    parent_id: workspace.parentId,
    tier: workspace.tier,
    max_concurrent_tasks: workspace.maxConcurrentTasks,
    max_attempts: workspace.maxAttempts,
    working_dir: workspace.workingDir,
    runtime_config: hideSecrets(workspace.runtimeConfig),
    created_at: new Date(workspace.createdAtMs).toISOString(),
  }) as WorkspaceView
}

const SECRET_KEY = /token|key|secret|password/i
const HIDDEN = '[hidden]'

/** Numbers and switches under such a key (`max_tokens: 4096`) are no secrets. */
function hideSecrets(value: Json, key = ''): Json {
  if (Array.isArray(value)) return value.map((item) => hideSecrets(item, key))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hideSecrets(item, name)]))
  }
  return typeof value === 'string' && value !== '' && SECRET_KEY.test(key) ? HIDDEN : value
}

function refused(error: z.ZodError): MoleculeError {
  const [issue] = error.issues
  if (issue?.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => `"${key}"`).join(', ')
    const known = Object.keys(newWorkspace.shape).join(', ')
    return invalid(`${names} is not a field of a workspace; the fields are ${known}`, issue.keys[0] ?? '')
  }
  const path = issue?.path.map(String).join('.') ?? ''
  const problem = lowerFirst(issue?.message ?? 'invalid')
  return invalid(path === '' ? `the body must be a JSON object: ${problem}` : `field "${path}": ${problem}`, path)
}

function invalid(message: string, path: string): MoleculeError {
  return new MoleculeError('invalid_request', message, { details: { path } })
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
}
