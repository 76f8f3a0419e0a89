/**
 * Who exists: workspaces are made, looked up and listed here. Making one checks its backend first, so that a workspace
 * that says `online` can answer, and one that cannot says why.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MoleculeError } from '../errors.ts'
import { workspaceId } from '../ids.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { backendOptions } from './options.ts'
import type { NewWorkspace, Workspace, WorkspaceLoad, WorkspaceStatus, Workspaces } from './workspace.ts'

const DEFAULT_RUNTIME = 'claude-code'
const DEFAULT_TIER = 2
const DEFAULT_SLOTS = 1
/** First try and three retries. */
const DEFAULT_ATTEMPTS = 4
/** The platform runs on one machine's memory: a list without end would not be one. */
const WORKSPACES_MAX = 10_000

export type Check = { readonly ok: true } | { readonly ok: false; readonly reason: string }

export interface WorkspacesOptions {
  readonly store: Store
  /** The folder that holds one folder a workspace. */
  readonly folder: string
  /** Builds and validates the backend: throws `bad_config` for options it refuses, says why it cannot run here. */
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<Check>
}

export function createWorkspaces({ store, folder, check }: WorkspacesOptions): Workspaces {
  return {
    async create(input) {
      const runtime = input.runtime ?? DEFAULT_RUNTIME
      const checked = await accept(() => check(runtime, backendOptions(input.runtimeConfig ?? {})))
      if (input.parentId !== undefined) await mustExist(store, input.parentId)
      const id = workspaceId()
      const home = join(folder, id.replace('ws_', 'ws-'))
      const workingDir = input.workingDir ?? join(home, 'work')
      const workspace = complete(input, { id, runtime, workingDir, checked })
      await mkdir(input.workingDir === undefined ? workingDir : home, { recursive: true, mode: 0o700 })
      await store.write(() => insert(workspace))
      const made = await store.read(() => find(id))
      if (made === undefined) throw new MoleculeError('internal', `workspace ${id} is gone right after it was made`)
      return made
    },
    get: (id) => store.read(() => find(id)),
    list: () => store.read(list),
  }
}

/** What the backend refuses is the caller's mistake here, not a broken configuration of the platform. */
async function accept(check: () => Promise<Check>): Promise<Check> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof MoleculeError) || error.code !== 'bad_config') throw error
    throw new MoleculeError('invalid_request', error.message, { cause: error, details: error.details })
  }
}

async function mustExist(store: Store, parentId: string): Promise<void> {
  const parent = await store.read(() => find(parentId))
  if (parent === undefined) throw new MoleculeError('invalid_request', `parent_id: there is no workspace ${parentId}`)
}

type Stored = Omit<Workspace, 'createdAtMs'>

interface Made {
  readonly id: string
  readonly runtime: string
  readonly workingDir: string
  readonly checked: Check
}

function complete(input: NewWorkspace, { id, runtime, workingDir, checked }: Made): Stored {
  return {
    id,
    name: input.name,
    role: input.role ?? '',
    runtime,
    tier: input.tier ?? DEFAULT_TIER,
    maxConcurrentTasks: input.maxConcurrentTasks ?? configured(input, 'max_concurrent_tasks') ?? DEFAULT_SLOTS,
    maxAttempts: input.maxAttempts ?? configured(input, 'max_attempts') ?? DEFAULT_ATTEMPTS,
    workingDir,
    runtimeConfig: input.runtimeConfig ?? {},
    status: checked.ok ? 'online' : 'failed',
    ...(!checked.ok && { statusReason: checked.reason }),
    ...(input.model !== undefined && { model: input.model }),
    ...(input.parentId !== undefined && { parentId: input.parentId }),
  }
}

const CONFIGURED_MAX = { max_attempts: 100, max_concurrent_tasks: 1000 } as const

/** The runtime's own settings may also stand among the backend's options, where `config.yaml` has them. */
function configured({ runtimeConfig }: NewWorkspace, key: keyof typeof CONFIGURED_MAX): number | undefined {
  const value = runtimeConfig?.[key]
  if (value === undefined || value === null || value === '') return undefined
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= 1 && number <= CONFIGURED_MAX[key])
    return number
  const message = `runtime_config.${key} must be a whole number from 1 to ${CONFIGURED_MAX[key]}, not ${JSON.stringify(value)}`
  throw new MoleculeError('invalid_request', message, { details: { path: `runtime_config.${key}` } })
}

/** What is kept as one JSON value: read whole, never searched. */
type Settings = Pick<
  Workspace,
  'model' | 'parentId' | 'tier' | 'maxConcurrentTasks' | 'maxAttempts' | 'workingDir' | 'runtimeConfig'
>

function* insert(workspace: Stored): Transaction<void> {
  const { id, name, role, runtime, status, statusReason, ...settings } = workspace
  const [count] = yield* sql<{ total: number }>('select count(*) as total from workspaces')
  if ((count?.total ?? 0) >= WORKSPACES_MAX) {
    throw new MoleculeError('invalid_request', `there are ${WORKSPACES_MAX} workspaces already: delete some first`)
  }
  yield* sql(
    `insert into workspaces (id, name, role, runtime, settings, status, status_reason, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, now_ms())`,
    [id, name, role, runtime, JSON.stringify(settings satisfies Settings), status, statusReason ?? null],
  )
  yield* sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 1, $2)', [
    id,
    workspace.maxConcurrentTasks,
  ])
}

interface WorkspaceRow {
  id: string
  name: string
  role: string
  runtime: string
  settings: string
  status: WorkspaceStatus
  status_reason: string | null
  created_at: number
  running: number
  waiting: number
  turns: number
  working_on: string | null
}

/** A turn that runs, or waits for somebody, of the workspace. */
const RUNNING = `m.workspace_id = w.id and m.state in ('leased', 'stopping')`
const TURNS = `(select count(*) from messages m where ${RUNNING})`
const SELECT = `select w.id, w.name, w.role, w.runtime, w.settings, w.status, w.status_reason, w.created_at,
  l.running, l.waiting, ${TURNS} as turns,
  (select m.envelope from messages m where ${RUNNING} limit 1) as working_on from workspaces w join workspace_load l on l.workspace_id = w.id`

export function* find(id: string): Transaction<(Workspace & WorkspaceLoad) | undefined> {
  const [row] = yield* sql<WorkspaceRow>(`${SELECT} where w.id = $1`, [id])
  return row === undefined ? undefined : toWorkspace(row)
}

function* list(): Transaction<(Workspace & WorkspaceLoad)[]> {
  const rows = yield* sql<WorkspaceRow>(`${SELECT} order by w.id limit ${WORKSPACES_MAX}`)
  return rows.map(toWorkspace)
}

function toWorkspace(row: WorkspaceRow): Workspace & WorkspaceLoad {
  return {
    ...(JSON.parse(row.settings) as Settings),
    id: row.id,
    name: row.name,
    role: row.role,
    runtime: row.runtime,
    status: row.status,
    ...(row.status_reason !== null && { statusReason: row.status_reason }),
    createdAtMs: row.created_at,
    queueDepth: row.waiting,
    running: row.running,
    ...(row.working_on !== null && { currentTask: describeWork(row.turns, row.working_on) }),
  }
}

const CURRENT_TASK_CHARACTERS_MAX = 120

/** Derived from the leases themselves, so that it can never be left standing after a turn has ended. */
function describeWork(turns: number, envelope: string): string {
  if (turns > 1) return `${turns} turns running`
  const text = restoreEnvelope(envelope)
    .message.parts.map((part) => part.text ?? '')
    .join(' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return text.length > CURRENT_TASK_CHARACTERS_MAX ? `${text.slice(0, CURRENT_TASK_CHARACTERS_MAX - 1)}…` : text
}
