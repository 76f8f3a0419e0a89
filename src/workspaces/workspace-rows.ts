/**
 * Workspaces in the store. The content of `config.yaml` is mirrored here, so that a list reads no files. Parent, tier,
 * permission, working folder and status text are stored only here. A workspace exists while it has a row in
 * `workspace_load`; its row in `workspaces` stays as a tombstone.
 */
import { isDeepStrictEqual } from 'node:util'
import { MoleculeError } from '../errors.ts'
import { isWorkspaceId } from '../ids.ts'
import {
  changeQueue,
  countQueues,
  hasQueue,
  insertQueue,
  lockCreation,
  OPEN_PERMISSIONS,
  parkedStatusOf,
  type QueueSettings,
  readySinceOf,
  withQueue,
} from '../inbox/queue-rows.ts'
import { withinPage } from '../store/page-budget.ts'
import { sql, type Transaction } from '../store/store.ts'
import type { WorkspaceConfig } from './config/config-file.ts'
import { toWorkspace, type WorkspaceRow, type WorkspaceSettings } from './to-workspace.ts'
import {
  type BackendCheck,
  isExternal,
  NAMESAKES_MAX,
  type Workspace,
  type WorkspaceLoad,
  type WorkspaceQuery,
  type WorkspaceStatus,
} from './workspace.ts'

/** At the limit, `insertWorkspace` refuses a new one. */
const WORKSPACES_MAX = 10_000

/** Settings that are not in `config.yaml`. */
export type StoreOnlySettings = Pick<
  WorkspaceSettings,
  'parentId' | 'tier' | 'permission' | 'team' | 'workingDir' | 'statusText'
>

export interface NewWorkspaceRow {
  readonly id: string
  readonly config: WorkspaceConfig
  readonly configHash: string
  readonly storeOnly: StoreOnlySettings
  readonly checked: BackendCheck
  /** False refuses a name that another workspace has. */
  readonly allowDuplicate?: boolean | undefined
}

export function* insertWorkspace(row: NewWorkspaceRow): Transaction<void> {
  const { id, config, storeOnly, checked, allowDuplicate } = row
  if ((yield* countQueues()) >= WORKSPACES_MAX) {
    throw new MoleculeError('invalid_request', `there are already ${WORKSPACES_MAX} workspaces: delete some first`)
  }
  if (storeOnly.parentId !== undefined) yield* requireParent(storeOnly.parentId)
  if (storeOnly.team !== undefined) yield* requireNewMember(storeOnly.team, config.name)
  if (allowDuplicate === false) {
    yield* lockCreation('names')
    yield* requireFreeName(config.name, id)
  }
  yield* sql(
    `insert into workspaces (id, name, role, runtime, settings, status, status_reason, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, now_ms())`,
    [id, config.name, config.role, config.runtime, settingsText(row, storeOnly), ...statusOf(checked)],
  )
  yield* insertQueue(id, queueSettings(config))
}

const queueSettings = (config: WorkspaceConfig): QueueSettings => ({
  isHosted: !isExternal(config),
  slots: config.maxConcurrentTasks,
})

/** Throws where a workspace other than `ownId` has the name. */
export function* requireFreeName(name: string, ownId?: string): Transaction<void> {
  const [other] = (yield* findIdsByName(name)).filter((id) => id !== ownId)
  if (other === undefined) return
  const advice = 'choose another name, or allow a second one (allow_duplicate, at the command line --allow-duplicate)'
  const message = `there is a workspace called ${JSON.stringify(name)} already (${other}); ${advice}`
  throw new MoleculeError('unsupported_operation', message, { details: { workspace: other } })
}

/** Two applies of one new team at the same moment make one workspace. */
function* requireNewMember(team: string, name: string): Transaction<void> {
  yield* lockCreation('team')
  const namesakes = yield* sql<{ id: string; settings: string }>(
    `select w.id, w.settings from workspaces w where w.name = $1 and ${withQueue('w.id')}
     order by w.id limit ${NAMESAKES_MAX}`,
    [name],
  )
  const member = namesakes.find(({ settings }) => (JSON.parse(settings) as WorkspaceSettings).team === team)
  if (member === undefined) return
  const message = `the team ${JSON.stringify(team)} has a workspace of this name already (${member.id})`
  throw new MoleculeError('unsupported_operation', message)
}

/** The content of a file, and whether the backend can run with it. */
export interface MirroredConfig {
  readonly config: WorkspaceConfig
  readonly configHash: string
  readonly checked: BackendCheck
}

export function* mirrorConfig(id: string, mirrored: MirroredConfig): Transaction<void> {
  const { config, checked } = mirrored
  const [row] = yield* sql<{ settings: string }>('select settings from workspaces where id = $1', [id])
  if (row === undefined) return
  const settings = settingsText(mirrored, JSON.parse(row.settings) as StoreOnlySettings)
  yield* changeQueue(id, queueSettings(config))
  yield* sql(
    'update workspaces set name = $2, role = $3, runtime = $4, settings = $5, status = $6, status_reason = $7 where id = $1',
    [id, config.name, config.role, config.runtime, settings, ...statusOf(checked)],
  )
}

/** Stores that a file cannot be used, and which one, so that it is reported once. The settings stay as they were. */
export function* recordInvalidConfig(id: string, reason: string, configHash: string | undefined): Transaction<void> {
  const [row] = yield* sql<{ settings: string }>('select settings from workspaces where id = $1', [id])
  if (row === undefined) return
  const settings = {
    ...(JSON.parse(row.settings) as WorkspaceSettings),
    ...(configHash !== undefined && { configHash }),
  }
  yield* sql('update workspaces set settings = $2, status = $3, status_reason = $4 where id = $1', [
    id,
    JSON.stringify(settings),
    ...statusOf({ ok: false, reason }),
  ])
}

/** The stored config of a workspace, without its live numbers; undefined when the workspace does not exist. */
export function* findStoredConfig(id: string): Transaction<StoredConfig | undefined> {
  const [row] = yield* sql<{ name: string; role: string; runtime: string; settings: string }>(
    `select w.name, w.role, w.runtime, w.settings from workspaces w where w.id = $1 and ${withQueue('w.id')}`,
    [id],
  )
  if (row === undefined) return undefined
  const { settings, ...fields } = row
  return { ...fields, ...(JSON.parse(settings) as WorkspaceSettings) }
}

export interface StoredConfig extends WorkspaceSettings, Pick<Workspace, 'name' | 'role' | 'runtime'> {}

export interface StoreOnlyChange {
  readonly parentId?: string | null
  readonly tier?: number
  readonly permission?: Workspace['permission'] | null
  readonly workingDir?: string
}

export function* changeStoreOnlySettings(id: string, change: StoreOnlyChange): Transaction<void> {
  const [row] = yield* sql<{ settings: string }>('select settings from workspaces where id = $1', [id])
  if (row === undefined) throw workspaceNotFound(id)
  const settings: Record<string, unknown> = { ...(JSON.parse(row.settings) as WorkspaceSettings), ...change }
  if (typeof change.parentId === 'string') yield* requireNoCycle(id, change.parentId)
  for (const key of ['parentId', 'permission'] as const) if (change[key] === null) delete settings[key]
  yield* sql('update workspaces set settings = $2 where id = $1', [id, JSON.stringify(settings)])
}

/** Sets what the workspace says it is doing. An empty text removes it. */
export function* setStatusText(id: string, text: string): Transaction<void> {
  const [row] = yield* sql<{ settings: string; now: number }>(
    'select settings, now_ms() as now from workspaces where id = $1 and deleted_at is null',
    [id],
  )
  if (row === undefined) throw workspaceNotFound(id)
  const { statusText: _before, ...settings } = JSON.parse(row.settings) as WorkspaceSettings
  const changed = text === '' ? settings : { ...settings, statusText: { text, atMs: row.now } }
  yield* sql('update workspaces set settings = $2 where id = $1', [id, JSON.stringify(changed)])
}

/** Stores what a turn has shown not to work, until the backend is checked again. */
export function* setLimits(id: string, limits: readonly string[]): Transaction<void> {
  const [row] = yield* sql<{ settings: string }>('select settings from workspaces where id = $1', [id])
  if (row === undefined) return
  const { limits: before = [], ...settings } = JSON.parse(row.settings) as WorkspaceSettings
  if (isDeepStrictEqual(before, limits)) return
  const changed = limits.length === 0 ? settings : { ...settings, limits }
  yield* sql('update workspaces set settings = $2 where id = $1', [id, JSON.stringify(changed)])
}

/** Prevents a cycle of parents: removing such a workspace with its children would never end. */
function* requireNoCycle(id: string, parentId: string): Transaction<void> {
  yield* requireParent(parentId)
  const parents = new Map((yield* listTeam()).map((member) => [member.id, member.parentId]))
  const seen = new Set([id])
  for (let above: string | undefined = parentId; above !== undefined; above = parents.get(above)) {
    if (seen.has(above)) {
      throw new MoleculeError('invalid_request', `parent_id: ${parentId} is below ${id} itself`, {
        details: { path: 'parent_id' },
      })
    }
    seen.add(above)
  }
}

export function* requireParent(parentId: string): Transaction<void> {
  if (yield* hasQueue(parentId)) return
  throw new MoleculeError('invalid_request', `parent_id: there is no workspace ${parentId}`, {
    details: { path: 'parent_id' },
  })
}

/** What other workspaces may know of one. */
export interface TeamMember {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly parentId: string | undefined
}

/** All workspaces, oldest first. */
export function* listTeam(): Transaction<TeamMember[]> {
  const rows = yield* sql<{ id: string; name: string; role: string; settings: string }>(
    `select w.id, w.name, w.role, w.settings from workspaces w where ${withQueue('w.id')} order by w.id`,
  )
  return rows.map(({ settings, ...row }) => ({
    ...row,
    parentId: (JSON.parse(settings) as WorkspaceSettings).parentId,
  }))
}

/** Leaves a tombstone. The workspace exists until the end of its queue removes the row of `workspace_load`. */
export function* markDeleted(id: string): Transaction<void> {
  yield* sql(
    `update workspaces set deleted_at = now_ms(), token_generation = token_generation + 1
     where id = $1 and deleted_at is null`,
    [id],
  )
  for (const table of ['presence', 'schedules']) yield* sql(`delete from ${table} where workspace_id = $1`, [id])
}

export const workspaceNotFound = (id: string): MoleculeError =>
  new MoleculeError('not_found', `there is no workspace ${id}`)

function settingsText(
  { config, configHash, checked: { limits = [] } }: MirroredConfig,
  storeOnly: StoreOnlySettings,
): string {
  const settings: WorkspaceSettings = {
    configHash,
    tier: storeOnly.tier,
    workingDir: storeOnly.workingDir,
    maxConcurrentTasks: config.maxConcurrentTasks,
    maxAttempts: config.maxAttempts,
    runtimeConfig: config.runtimeConfig,
    model: config.model,
    parentId: storeOnly.parentId,
    permission: storeOnly.permission,
    team: storeOnly.team,
    statusText: storeOnly.statusText,
    ...(limits.length > 0 && { limits }),
  }
  return JSON.stringify(settings)
}

/** After a turn that was answered. A workspace that is not `failed` keeps its status. */
export function* markOnline(id: string): Transaction<void> {
  yield* sql("update workspaces set status = 'online', status_reason = null where id = $1 and status = 'failed'", [id])
}

const statusOf = (checked: BackendCheck): [WorkspaceStatus, string | null] =>
  checked.ok ? ['online', null] : ['failed', checked.reason]

/** Matches a turn of the workspace that is running or waiting. */
const IS_RUNNING = `m.workspace_id = w.id and m.state in ('leased', 'stopping')`
const SELECT_WORKSPACE = `select w.id, w.name, w.role, w.runtime, w.settings, w.status, w.status_reason, w.login_state,
  w.created_at, l.hosted, l.paused, l.slots, l.running, l.waiting, p.heard_at, p.signed_off_at, p.report, a.asked, now_ms() as now,
  ${readySinceOf('w.id')} as ready_since,
  ${parkedStatusOf('w.id')} as parked_status, (select count(*) from messages m where ${IS_RUNNING}) as turns,
  (select min(coalesce(m.leased_at, m.admitted_at)) from messages m where ${IS_RUNNING}) as since,
  (select m.envelope from messages m where ${IS_RUNNING} limit 1) as working_on
  from workspaces w join workspace_load l on l.workspace_id = w.id left join presence p on p.workspace_id = w.id
  left join ${OPEN_PERMISSIONS} a on a.workspace_id = w.id`

export function* findWorkspace(id: string): Transaction<(Workspace & WorkspaceLoad) | undefined> {
  const [row] = yield* sql<WorkspaceRow>(`${SELECT_WORKSPACE} where w.id = $1`, [id])
  return row && toWorkspace(row)
}

/** At most `NAMESAKES_MAX`, the oldest first. A call by id does not come here. */
export function* findIdsByName(name: string): Transaction<string[]> {
  const rows = yield* sql<{ id: string }>(
    `select w.id from workspaces w where w.name = $1 and ${withQueue('w.id')}
     order by w.id limit ${NAMESAKES_MAX}`,
    [name],
  )
  return rows.map(({ id }) => id)
}

/** Throws `not_found` for an unknown workspace. */
export function* requireWorkspace(id: string): Transaction<Workspace & WorkspaceLoad> {
  const workspace = isWorkspaceId(id) ? yield* findWorkspace(id) : undefined
  if (workspace === undefined) throw workspaceNotFound(id)
  return workspace
}

/** The settings of a workspace that a turn needs. */
export type TurnSettings = Pick<
  Workspace,
  'role' | 'runtime' | 'model' | 'maxAttempts' | 'workingDir' | 'runtimeConfig' | 'permission'
>

/** The stored settings, not parsed: a caller that has parsed the same text before need not parse it again. */
export interface SettingsRow {
  readonly role: string
  readonly runtime: string
  readonly settings: string
  /** Conversation tokens of an earlier generation are refused. */
  readonly tokenGeneration: number
}

/** Undefined when the workspace does not exist. */
export function* findSettings(id: string): Transaction<SettingsRow | undefined> {
  const [row] = yield* sql<SettingsRow>(
    `select w.role, w.runtime, w.settings, w.token_generation as "tokenGeneration"
     from workspaces w where w.id = $1 and ${withQueue('w.id')}`,
    [id],
  )
  return row
}

/** Without the live numbers: `SELECT_WORKSPACE` costs more than a whole turn. */
export const parseSettings = ({ role, runtime, settings }: Omit<SettingsRow, 'tokenGeneration'>): TurnSettings => ({
  ...(JSON.parse(settings) as WorkspaceSettings),
  role,
  runtime,
})

/** A list shows what a workspace works on up to this size of message; of a larger one only the size. */
const LISTED_ENVELOPE_BYTES_MAX = 16 * 1024

/** For many workspaces: running turns and open asks are looked up once for all of them, not once for each. */
const selectWorkspaces = (keys: string): string => `select w.id, w.name, w.role, w.runtime, w.settings, w.status,
    w.status_reason, w.login_state, w.created_at, l.hosted, l.paused, l.slots, l.running, l.waiting, p.heard_at, p.signed_off_at,
    p.report, a.asked, now_ms() as now, coalesce(r.turns, 0) as turns, r.since, octet_length(m.envelope) as working_bytes,
    ${readySinceOf('w.id')} as ready_since,
    case when octet_length(m.envelope) <= ${LISTED_ENVELOPE_BYTES_MAX} then m.envelope end as working_on, ${parkedStatusOf('w.id')} as parked_status
  from (${keys}) k join workspaces w on w.id = k.id join workspace_load l on l.workspace_id = w.id
  left join presence p on p.workspace_id = w.id
  left join ${OPEN_PERMISSIONS} a on a.workspace_id = w.id
  left join (select workspace_id, count(*) as turns, max(id) as message_id,
      min(coalesce(leased_at, admitted_at)) as since from messages
    where state in ('leased', 'stopping') group by workspace_id) r on r.workspace_id = w.id
  left join messages m on m.id = r.message_id and r.turns = 1 order by w.id`

const ALL_WORKSPACES = selectWorkspaces(
  `select workspace_id as id from workspace_load order by workspace_id limit ${WORKSPACES_MAX}`,
)
const PAGE_OF_WORKSPACES = selectWorkspaces(
  withinPage(
    `select w.id, octet_length(w.settings) + octet_length(w.role) + coalesce(octet_length(p.report), 0) as bytes
     from workspaces w join workspace_load l on l.workspace_id = w.id left join presence p on p.workspace_id = w.id
     where w.id > $1 order by w.id limit $2`,
    'p.id',
  ),
)

export function* listWorkspaces(): Transaction<(Workspace & WorkspaceLoad)[]> {
  const rows = yield* sql<WorkspaceRow>(ALL_WORKSPACES)
  return rows.map(toWorkspace)
}

/** The ids of a page, in their order. */
export function* listWorkspaceIds({ after = '', limit }: WorkspaceQuery): Transaction<string[]> {
  const rows = yield* sql<{ workspace_id: string }>(
    'select workspace_id from workspace_load where workspace_id > $1 order by workspace_id limit $2',
    [after, limit],
  )
  return rows.map((row) => row.workspace_id)
}

export function* listWorkspacePage({ after = '', limit }: WorkspaceQuery): Transaction<ReadPage> {
  const rows = yield* sql<WorkspaceRow>(PAGE_OF_WORKSPACES, [after, limit])
  const last = rows.at(-1)?.id
  const [later] = last === undefined ? [] : yield* listWorkspaceIds({ after: last, limit: 1 })
  return { read: rows.map(toWorkspace), ...(last !== undefined && later !== undefined && { next: last }) }
}

/** A page of workspaces as the rows say it. */
interface ReadPage {
  readonly read: readonly (Workspace & WorkspaceLoad)[]
  readonly next?: string
}
