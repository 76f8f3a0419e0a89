/**
 * Workspaces: create, list, read, change, delete, restart, pause, stop, resume. An unknown field of a body is refused by
 * name, because a typo that is silently dropped is found weeks later.
 */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { URL_CHARACTERS_MAX } from '../protocol/schemas.ts'
import {
  ATTEMPTS_MAX,
  DEFAULT_TIER,
  isModelName,
  MODEL_NAME_REASON,
  NO_SANDBOX_REASON,
  ROLE_CHARACTERS_MAX,
  SANDBOX_TIER,
  SLOTS_MAX,
} from '../workspaces/workspace.ts'
import { endpoint } from './endpoint.ts'
import { nameSchema, shortTextSchema } from './fields.ts'
import { tokenViewSchema } from './tokens.ts'

export const PATH_CHARACTERS_MAX = 4096

/** Workspaces of one page. */
const WORKSPACES_LISTED = 100
const WORKSPACES_LISTED_MAX = 1000

const modelName = shortTextSchema.refine(isModelName, MODEL_NAME_REASON)

export const newWorkspaceSchema = z.strictObject({
  name: nameSchema,
  role: z.string().max(ROLE_CHARACTERS_MAX).optional(),
  runtime: shortTextSchema.meta({ names: 'runtimes' }).optional(),
  model: modelName.optional(),
  parent_id: shortTextSchema.optional(),
  tier: z
    .literal(DEFAULT_TIER, { error: ({ input }) => (input === SANDBOX_TIER ? NO_SANDBOX_REASON : 'must be 2') })
    .optional(),
  max_concurrent_tasks: z.int().min(1).max(SLOTS_MAX).optional(),
  max_attempts: z.int().min(1).max(ATTEMPTS_MAX).optional(),
  working_dir: z.string().max(PATH_CHARACTERS_MAX).refine(isAbsolute, 'must be an absolute path').optional(),
  permission: z.enum(['ask', 'allowed_tools', 'bypass']).optional(),
  template: shortTextSchema.optional(),
  team: shortTextSchema.optional(),
  runtime_config: z.record(z.string(), z.json()).optional(),
  url: z.string().trim().min(1).max(URL_CHARACTERS_MAX).optional(),
  allow_duplicate: z
    .boolean()
    .optional()
    .describe('false refuses a name that another workspace has; without it a second one is made, with a warning'),
})

/** The fields that may be changed later; null removes the value. */
export const workspaceChangeSchema = newWorkspaceSchema.omit({ template: true, team: true }).extend({
  name: newWorkspaceSchema.shape.name.optional(),
  model: modelName.nullish(),
  parent_id: shortTextSchema.nullish(),
  permission: newWorkspaceSchema.shape.permission.nullable(),
})

/** A workspace. A role that may not see a field gets none. */
export const workspaceSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  role: z.string(),
  runtime: z.string(),
  status: z.enum(['provisioning', 'online', 'needs_login', 'degraded', 'offline', 'paused', 'failed']),
  status_reason: z.string().optional(),
  limits: z
    .array(z.string())
    .optional()
    .describe('What does not work with the program of its agent. Absent: all works.'),
  queue_depth: z.number().optional(),
  running: z.number().optional(),
  current_task: z.string().nullable().optional(),
  current_since: z.string().optional().describe('When the oldest running turn began.'),
  last_answered_at: z.string().optional(),
  today: z
    .strictObject({
      turns: z.number(),
      unknown_turns: z.number().describe('Turns that reported no cost.'),
      cost_usd: z.number().nullable().describe('Null where no turn reported a cost.'),
    })
    .optional()
    .describe('Since midnight UTC.'),
  needs_you: z
    .strictObject({ count: z.number(), reason: z.string().describe('The most urgent thing.') })
    .nullable()
    .optional(),
  status_text: z.string().optional(),
  status_text_at: z.string().nullable().optional(),
  model: z.string().optional(),
  parent_id: z.string().nullable().optional(),
  tier: z.number(),
  max_concurrent_tasks: z.number(),
  max_attempts: z.number(),
  working_dir: z.string().optional(),
  permission: z.enum(['ask', 'allowed_tools', 'bypass']).optional(),
  team: z.string().optional(),
  runtime_config: z.record(z.string(), z.unknown()).optional(),
  created_at: z.string(),
})

export const checkShape = {
  ok: z.boolean().describe('Whether the backend could run with these settings.'),
  reason: z.string().optional().describe('Why it could not.'),
  limits: z.array(z.string()).optional().describe('What does not work with the program that was found.'),
  warnings: z.array(z.string()).describe('What the owner should know about the settings.'),
}

export const workspaceCheckSchema = z.strictObject(checkShape).describe('Of a dry run, with the status 200.')

const bridgeAccessShape = {
  auth_token: z.string().describe('The token of the bridge; it is only in this answer.'),
  connect: z.string().describe('The command that runs the bridge, with its token.'),
}

const createdSchema = workspaceSchema.extend({
  auth_token: bridgeAccessShape.auth_token.optional(),
  connect: bridgeAccessShape.connect.optional(),
  warnings: z.array(z.string()).optional().describe('Settings that have no effect, and a name that is taken.'),
})

const dryRun = z.boolean().default(false)

export const createWorkspace = endpoint('POST /workspaces', {
  access: 'workspace.create',
  query: z.object({ dry_run: dryRun }),
  body: { schema: newWorkspaceSchema, name: 'a workspace' },
  summary: 'Create a workspace; dry_run=true only checks the body',
  success: [201, 'The workspace, and "warnings" where a setting has no effect or the name is taken'],
  answer: z.union([createdSchema, workspaceCheckSchema]),
})

export const listWorkspaces = endpoint('GET /workspaces', {
  access: 'workspace.read',
  query: z.object({
    limit: z.int().min(1).max(WORKSPACES_LISTED_MAX).default(WORKSPACES_LISTED),
    after: z.string().optional(),
  }),
  summary: 'The workspaces that the token reaches; "limit" (100, at most 1,000) and "after" read a page',
  success: [200, 'The workspaces, and "next" where there are more'],
  answer: z.strictObject({ workspaces: z.array(workspaceSchema), next: z.string().optional() }),
})

export const readWorkspace = endpoint('GET /workspaces/{id}', {
  access: 'workspace.read',
  reach: 'reachable',
  summary: 'One workspace',
  success: [200, 'The workspace'],
  answer: workspaceSchema,
})

export const changeWorkspace = endpoint('PATCH /workspaces/{id}', {
  access: 'workspace.change',
  query: z.object({ dry_run: dryRun }),
  body: { schema: workspaceChangeSchema, name: 'a workspace' },
  summary: 'Change a workspace; a field that is absent stays as it is; dry_run=true only checks the body',
  success: [200, 'The workspace'],
  answer: z.union([workspaceSchema, workspaceCheckSchema]),
})

export const createConnectCommand = endpoint('POST /workspaces/{id}/connect-command', {
  access: 'token.handle',
  summary:
    'A new token for the bridge of an external workspace, and the command that uses it; earlier tokens stay valid',
  success: [201, 'The command with its token, and the earlier tokens of its bridges'],
  answer: z.strictObject({ ...bridgeAccessShape, earlier_tokens: z.array(tokenViewSchema) }),
})

export const deleteWorkspace = endpoint('DELETE /workspaces/{id}', {
  access: 'workspace.delete',
  query: z.object({ confirm: z.string().optional(), cascade: z.boolean().default(false) }),
  summary: 'Delete a workspace; needs confirm=<its name or id> in the query, and cascade=true for those below it',
  success: [200, 'The ids of the deleted workspaces'],
  answer: z.strictObject({ deleted: z.array(z.string()) }),
})

export const restartWorkspace = endpoint('POST /workspaces/{id}/restart', {
  access: 'workspace.restart',
  summary: 'Begin the next turn with a new backend, and check whether the backend can run',
  success: [200, 'The workspace'],
  answer: workspaceSchema,
})

export const pauseWorkspace = endpoint('POST /workspaces/{id}/pause', {
  access: 'workspace.pause',
  query: z.object({ now: z.boolean().default(false) }),
  summary: 'Keep the queue and begin no turn; now=true also stops running turns, which run again later',
  success: [200, 'The workspace'],
  answer: workspaceSchema,
})

export const stopWorkspace = endpoint('POST /workspaces/{id}/stop', {
  access: 'workspace.pause',
  summary: 'Cancel the tasks of the running turns, and pause; the messages that wait are kept',
  success: [200, 'The workspace, and the ids of the cancelled tasks as "canceled"'],
  answer: workspaceSchema.extend({ canceled: z.array(z.string()) }),
})

export const stopWorkspaces = endpoint('POST /stop', {
  access: 'workspace.pause',
  summary: 'Stop every workspace: cancel the tasks of all running turns, and pause; the messages that wait are kept',
  success: [200, 'The stopped workspaces with the ids of their cancelled tasks, and those that failed'],
  answer: z.strictObject({
    stopped: z.array(
      z.strictObject({
        id: z.string(),
        name: z.string(),
        /** Ids of the cancelled tasks. */
        canceled: z.array(z.string()),
        queue_depth: z.number(),
      }),
    ),
    failed: z.array(z.strictObject({ id: z.string(), name: z.string(), message: z.string() })),
  }),
})

export const resumeWorkspace = endpoint('POST /workspaces/{id}/resume', {
  access: 'workspace.pause',
  summary: 'End a pause',
  success: [200, 'The workspace'],
  answer: workspaceSchema,
})

export const workspaceEndpoints = [
  createWorkspace,
  listWorkspaces,
  readWorkspace,
  changeWorkspace,
  createConnectCommand,
  deleteWorkspace,
  restartWorkspace,
  pauseWorkspace,
  stopWorkspace,
  stopWorkspaces,
  resumeWorkspace,
] as const
