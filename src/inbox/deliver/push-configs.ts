/**
 * Push configs: the webhooks of callers, and how far each has come. No row is stored for an event: a config holds a
 * cursor into the event log, which moves after each successful call. One worker at a time sends for a config (`worker`,
 * until `next_at`), so a webhook receives the events in order, one by one.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProtocolVersion } from '../../protocol/envelope.ts'
import type { PushConfig } from '../../protocol/push-config.ts'
import { type Statement, type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import type { NewPush, PushConfigs, PushCursor, PushKey, StoredPush } from '../delivery.ts'
import { IS_FINAL } from '../rows/task.ts'
import { isGivenUp, retryDelayMs } from './retry-schedule.ts'

/** Push configs of one task; a further one is refused. */
const PUSH_CONFIGS_MAX = 10
/** A cursor behind every event of its log entry. */
const WHOLE_ENTRY = 1_000_000_000
/** A claim that is not renewed is due again after this time. */
const CLAIM_MS = 60_000
/** An idle config is checked this often without a nudge. */
const IDLE_MS = 60_000

export function createPushConfigs(store: Store, host: string): PushConfigs {
  return {
    put: (push) => store.write(() => put(push), push.workspaceId),
    list: (workspaceId, taskId) => store.read(() => list(workspaceId, taskId)),
    remove: (key) => store.write(() => remove(key), key.workspaceId),
    nudge: (workspaceId, taskId) => store.write(() => nudge(workspaceId, taskId), workspaceId),
    async claim(limit) {
      // Mostly nothing is due: that must cost a read and no write.
      const due = await store.read(() => dueKeys(limit))
      const claimed: StoredPush[] = []
      for (const key of due) {
        const push = await store.write(() => claim(key, host), key.workspaceId)
        if (push !== undefined) claimed.push(push)
      }
      return claimed
    },
    async renew(keys) {
      await Promise.all(keys.map((key) => store.write(() => renew(key, host), key.workspaceId)))
    },
    async isCurrent(push) {
      const standing = await store.read(() => readStanding(push))
      if (standing?.ended) await store.write(() => end(push, standing.ended ?? ''), push.workspaceId)
      return standing !== undefined && !standing.ended && standing.config === JSON.stringify(push.config)
    },
    advance: (push, cursor) => store.write(() => advance(push, cursor), push.workspaceId),
    fail: (push, reason) => store.write(() => fail(push, reason), push.workspaceId),
    idle: (key) => store.write(() => idle(key), key.workspaceId),
    release: (key) => store.write(() => release(key), key.workspaceId),
  }
}

/** At start: the configs that this host had claimed when it died are due at once. */
export function* releasePushClaims(host: string): Transaction<void> {
  yield* sql('update push_configs set worker = null, next_at = now_ms() where worker = $1', [host])
}

interface PushRow {
  workspace_id: string
  task_id: string
  id: string
  version: string
  config: string
  state: string
  reason: string | null
  seq: number
  k: number
}

const COLUMNS = 'workspace_id, task_id, id, version, config, state, reason, seq, k'

function toPush(row: PushRow): StoredPush {
  return {
    workspaceId: row.workspace_id,
    taskId: row.task_id,
    id: row.id,
    version: row.version as ProtocolVersion,
    config: JSON.parse(row.config) as PushConfig,
    cursor: { seq: row.seq, k: row.k },
    ...(row.state === 'failed' && { failed: row.reason ?? '' }),
  }
}

function* put(push: NewPush): Transaction<StoredPush> {
  const { workspaceId, config, setBy } = push
  // Prevents a webhook that nothing ends: another node may accept a revoked token for some seconds.
  if (
    setBy?.secretId !== undefined &&
    (yield* sql('select id from tokens where id = $1', [setBy.tokenId])).length === 0
  )
    throw new MoleculeError('unauthenticated', 'the token was revoked')
  const known = yield* list(workspaceId, config.taskId)
  if (known.length >= PUSH_CONFIGS_MAX && !known.some(({ id }) => id === config.id)) {
    throw new MoleculeError('invalid_request', `a task has at most ${PUSH_CONFIGS_MAX} push configurations`)
  }
  const [[row]] = (yield* together([putStatement(push)])) as unknown as [PushRow[]]
  return toPush(row as PushRow)
}

/** For a task that is new: its number of configs is not checked. */
export const putStatement = ({ workspaceId, version, config, afterSeq, setBy }: NewPush): Statement =>
  statement(
    `insert into push_configs (task_id, id, workspace_id, version, config, state, seq, k, next_at, created_at, token_id,
       secret_id)
     values ($1, $2, $3, $4, $5, 'active', $6, ${WHOLE_ENTRY}, now_ms(), now_ms(), $7, $8)
     on conflict (task_id, id) do update set version = excluded.version, config = excluded.config,
       token_id = excluded.token_id, secret_id = excluded.secret_id,
       state = 'active', reason = null, tries = 0, first_failed_at = null, next_at = now_ms(), worker = null
     returning ${COLUMNS}`,
    [
      ...[config.taskId, config.id, workspaceId, version, JSON.stringify(config), afterSeq],
      ...[setBy?.tokenId ?? null, setBy?.secretId ?? null],
    ],
  )

function* list(workspaceId: string, taskId: string): Transaction<StoredPush[]> {
  const rows = yield* sql<PushRow>(
    `select ${COLUMNS} from push_configs where task_id = $1 and workspace_id = $2 order by created_at, id`,
    [taskId, workspaceId],
  )
  return rows.map(toPush)
}

function* remove({ workspaceId, taskId, id }: PushKey): Transaction<boolean> {
  const rows = yield* sql(
    'delete from push_configs where task_id = $1 and id = $2 and workspace_id = $3 returning id',
    [taskId, id, workspaceId],
  )
  return rows.length > 0
}

function* nudge(workspaceId: string, taskId: string): Transaction<void> {
  yield* sql(
    `update push_configs set next_at = now_ms()
     where task_id = $1 and workspace_id = $2 and state = 'active' and worker is null and tries = 0`,
    [taskId, workspaceId],
  )
}

function* dueKeys(limit: number): Transaction<PushKey[]> {
  const rows = yield* sql<PushRow>(
    `select ${COLUMNS} from push_configs where state = 'active' and next_at <= now_ms() order by next_at limit $1`,
    [limit],
  )
  return rows.map(toPush)
}

function* claim({ taskId, id }: PushKey, host: string): Transaction<StoredPush | undefined> {
  const [row] = yield* sql<PushRow>(
    `update push_configs set worker = $3, next_at = now_ms() + ${CLAIM_MS}
     where task_id = $1 and id = $2 and state = 'active' and next_at <= now_ms() returning ${COLUMNS}`,
    [taskId, id, host],
  )
  return row && toPush(row)
}

function* renew({ taskId, id }: PushKey, host: string): Transaction<void> {
  yield* sql(
    `update push_configs set next_at = now_ms() + ${CLAIM_MS} where task_id = $1 and id = $2 and worker = $3`,
    [taskId, id, host],
  )
}

/**
 * Why a token gives no right any more. A revoked token has no row: its revocation has ended its configs. A session that is
 * over has none either, and ends nothing: its person logged out.
 */
const ENDED = `case
  when t.kind = 'token' and t.expires_at <= now_ms() then 'the token has expired'
  when t.hash <> p.secret_id and not (coalesce(t.old_hash, '') = p.secret_id and coalesce(t.old_until, 0) > now_ms())
    then 'the secret of the token was replaced' end`

function* readStanding({ taskId, id }: PushKey): Transaction<{ config: string; ended: string | null } | undefined> {
  const [row] = yield* sql<{ config: string; ended: string | null }>(
    `select p.config, ${ENDED} as ended from push_configs p left join tokens t on t.id = p.token_id
     where p.task_id = $1 and p.id = $2 and p.state = 'active'`,
    [taskId, id],
  )
  return row
}

function* end({ taskId, id }: PushKey, reason: string): Transaction<void> {
  yield* sql(
    `update push_configs set state = 'failed', reason = $3, worker = null
     where task_id = $1 and id = $2 and state = 'active'`,
    [taskId, id, reason],
  )
}

function* advance({ taskId, id, config }: StoredPush, { seq, k }: PushCursor): Transaction<boolean> {
  const [row] = yield* sql<{ config: string }>(
    `update push_configs set seq = $3, k = $4, tries = 0, first_failed_at = null, reason = null
     where task_id = $1 and id = $2 and state = 'active' returning config`,
    [taskId, id, seq, k],
  )
  return row?.config === JSON.stringify(config)
}

function* fail({ taskId, id, config }: StoredPush, reason: string): Transaction<'later' | 'given_up'> {
  const [row] = yield* sql<{ tries: number; failing: number }>(
    `update push_configs set tries = tries + 1, first_failed_at = coalesce(first_failed_at, now_ms()), worker = null
     where task_id = $1 and id = $2 and config = $3 and state = 'active'
     returning tries, now_ms() - first_failed_at as failing`,
    [taskId, id, JSON.stringify(config)],
  )
  // The caller deleted or replaced the config meanwhile: there is nothing to record.
  if (row === undefined) return 'later'
  const givenUp = isGivenUp(row.tries, row.failing)
  yield* sql(
    'update push_configs set state = $3, reason = $4, next_at = now_ms() + $5 where task_id = $1 and id = $2',
    [taskId, id, givenUp ? 'failed' : 'active', reason, retryDelayMs(row.tries)],
  )
  return givenUp ? 'given_up' : 'later'
}

function* idle({ taskId, id }: PushKey): Transaction<void> {
  yield* sql(
    `update push_configs set worker = null, next_at = now_ms() + ${IDLE_MS},
       state = case when exists (select 1 from tasks t where t.id = $1 and t.${IS_FINAL}) then 'done' else state end
     where task_id = $1 and id = $2 and state = 'active'`,
    [taskId, id],
  )
}

function* release({ taskId, id }: PushKey): Transaction<void> {
  yield* sql(`update push_configs set worker = null, next_at = now_ms() where task_id = $1 and id = $2`, [taskId, id])
}
