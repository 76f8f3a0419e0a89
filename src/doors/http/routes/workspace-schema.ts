/**
 * A workspace on the wire: the bodies of `POST` and `PATCH`, and the view that each role gets. Wire names are
 * snake_case. An unknown field is refused by name, because a typo that is silently dropped is found weeks later.
 */
import { isAbsolute } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { Json } from '../../../protocol/a2a.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { URL_CHARACTERS_MAX } from '../../../protocol/schemas.ts'
import { seesStatusText } from '../../../workspaces/may-talk.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import {
  ATTEMPTS_MAX,
  type CardFacts,
  DEFAULT_TIER,
  HIDDEN_SECRET,
  isModelName,
  isPlainLine,
  MODEL_NAME_REASON,
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
import { needOfWorkspace } from '../../needs-you.ts'
import { publicReason } from '../../public-reason.ts'
import { seesConfig } from '../server/reach.ts'
import { hideSecrets, holdsHidden } from './hide-secrets.ts'

const PATH_CHARACTERS_MAX = 4096

const shortText = z.string().trim().min(1).max(SHORT_TEXT_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON)
const modelName = shortText.refine(isModelName, MODEL_NAME_REASON)

export const newWorkspaceSchema = z.strictObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON),
  role: z.string().max(ROLE_CHARACTERS_MAX).optional(),
  runtime: shortText.meta({ names: 'runtimes' }).optional(),
  model: modelName.optional(),
  parent_id: shortText.optional(),
  tier: z
    .literal(DEFAULT_TIER, { error: ({ input }) => (input === SANDBOX_TIER ? NO_SANDBOX_REASON : 'must be 2') })
    .optional(),
  max_concurrent_tasks: z.int().min(1).max(SLOTS_MAX).optional(),
  max_attempts: z.int().min(1).max(ATTEMPTS_MAX).optional(),
  working_dir: z.string().max(PATH_CHARACTERS_MAX).refine(isAbsolute, 'must be an absolute path').optional(),
  permission: z.enum(['ask', 'allowed_tools', 'bypass']).optional(),
  template: shortText.optional(),
  team: shortText.optional(),
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
  parent_id: shortText.nullish(),
  permission: newWorkspaceSchema.shape.permission.nullable(),
})

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

/** A workspace as `viewWorkspace` shows it. A role that may not see a field gets none. */
export const workspaceViewSchema = z.strictObject({
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

export type WorkspaceView = Readonly<Record<string, Json>>

export function viewWorkspace(workspace: Workspace & Partial<WorkspaceLoad>): WorkspaceView {
  return withoutUndefined({
    id: workspace.id,
    name: workspace.name,
    role: workspace.role,
    runtime: workspace.runtime,
    status: workspace.status,
    status_reason: workspace.statusReason,
    limits: workspace.limits,
    queue_depth: workspace.queueDepth,
    running: workspace.running,
    current_task: workspace.currentTask ?? null,
    current_since: workspace.currentSinceMs && instant(workspace.currentSinceMs),
    ...viewCard(workspace),
    status_text: workspace.statusText?.text,
    status_text_at: workspace.statusText && instant(workspace.statusText.atMs),
    model: workspace.model,
    parent_id: workspace.parentId,
    tier: workspace.tier,
    max_concurrent_tasks: workspace.maxConcurrentTasks,
    max_attempts: workspace.maxAttempts,
    working_dir: workspace.workingDir,
    permission: workspace.permission,
    team: workspace.team,
    runtime_config: hideSecrets(workspace.runtimeConfig),
    created_at: instant(workspace.createdAtMs),
  }) as WorkspaceView
}

const instant = (ms: number): string => new Date(ms).toISOString()

/** What only people see of a workspace's work; a program or a peer does not. */
function viewCard(workspace: Workspace & Partial<WorkspaceLoad>) {
  const { card } = workspace
  if (card === undefined) return {}
  return {
    last_answered_at: card.lastAnsweredAtMs && instant(card.lastAnsweredAtMs),
    today: { turns: card.today.turns, unknown_turns: card.today.unknownTurns, cost_usd: card.today.costUsd },
    needs_you: needsYou(workspace, card),
  }
}

/** How many things wait for a person, as `GET /needs-you` lists them, and the sentence about the most urgent one. */
function needsYou(workspace: Workspace & Partial<WorkspaceLoad>, card: CardFacts) {
  const { questions, budgets, deadLetters, deliveries, damagedReplies } = card
  const { permissionsAsked = 0 } = workspace
  const own = needOfWorkspace(workspace)
  const stored = questions + budgets + deadLetters + deliveries + damagedReplies
  const count = permissionsAsked + stored + (own === undefined ? 0 : 1)
  if (count === 0) return null
  const reasons = [
    permissionsAsked > 0 &&
      counted(permissionsAsked, 'a turn waits for your permission', 'turns wait for your permission'),
    questions > 0 && counted(questions, 'a message asks you a question', 'messages ask you a question'),
    budgets > 0 && counted(budgets, 'a budget is spent', 'budgets are spent'),
    own?.reason ?? false,
    deadLetters > 0 && counted(deadLetters, 'a message failed for good', 'messages failed for good'),
    deliveries > 0 && counted(deliveries, 'an answer may not have arrived', 'answers may not have arrived'),
    damagedReplies > 0 && counted(damagedReplies, 'a stored reply is damaged', 'stored replies are damaged'),
  ]
  return { count, reason: reasons.find((reason) => reason !== false) || '' }
}

const counted = (count: number, one: string, many: string): string => (count === 1 ? one : `${count} ${many}`)

/** The view of a workspace that this token may see. */
export function viewWorkspaceFor(identity: Identity, workspace: Workspace & WorkspaceLoad): WorkspaceView {
  const view = viewWorkspace(workspace)
  if (seesConfig(identity)) return view
  const shown = withoutConfig(view)
  if (identity.role === 'viewer') return shown
  // Other callers' messages are for people only: a program or a peer does not see what the workspace works on.
  const { status_text: text, status_text_at: at, ...rest } = shown
  const known = withoutWork(rest)
  return seesStatusText(identity, workspace.id) && text !== undefined
    ? { ...known, status_text: text, status_text_at: at ?? null }
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
    ...(typeof reason === 'string' && { status_reason: publicReason(reason) }),
    ...(needs !== undefined && { needs_you: withPublicReason(needs) }),
  }
}

const withPublicReason = (needs: Json): Json =>
  isJsonObject(needs) ? { count: Number(needs['count']), reason: publicReason(String(needs['reason'])) } : needs

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

export function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
}
