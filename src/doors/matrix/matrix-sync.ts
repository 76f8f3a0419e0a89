/**
 * Reads what happens in the rooms: one long sync after the other. The messages of a room are handed to the door in their order,
 * and no room waits for another one. Invariant: the stored position moves on only when the door has stored every message
 * before it; when it cannot store one, all is read again from the stored position.
 */
import { stepOf } from '../../backoff.ts'
import { createKeyedQueue, onAbort, sleep } from '../../wait.ts'
import { MatrixRefusal } from './matrix-api.ts'
import { connectProblem, isTokenRefused, tokenRefused } from './matrix-errors.ts'
import { TIMELINE_TYPES } from './matrix-history.ts'
import type { Invites } from './matrix-invites.ts'
import { type MatrixJson, objectOf, textOf } from './matrix-json.ts'
import { NotStored } from './matrix-receive.ts'
import { type RoomContext, receiveRoom, takeState } from './matrix-sync-room.ts'

const SYNC_MS = 25_000
/** Besides the time that the homeserver may wait. */
const ANSWER_MS = 60_000
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const RETRY_MS = [1000, 2000, 5000, 15_000] as const
/** Of one room in one sync; what is before them is read page by page. */
const TIMELINE_EVENTS = 50
/** Syncs whose messages are not all stored. */
const OPEN_SYNCS_MAX = 20

const STATE = { types: TIMELINE_TYPES.slice(-4), lazy_load_members: true, include_redundant_members: true }
const NONE = { types: [] }
const filterOf = (limit: number): string =>
  JSON.stringify({
    presence: NONE,
    account_data: { types: ['m.direct'] },
    room: {
      ephemeral: NONE,
      account_data: NONE,
      state: STATE,
      timeline: { types: TIMELINE_TYPES, limit, lazy_load_members: true },
    },
  })

interface SyncContext extends RoomContext {
  readonly invites: Invites
  /** Why nothing arrives; undefined: all is well. */
  readonly problem: (sentence: string | undefined) => void
}

/** The rooms as they are now, without their messages; the position from which the next messages come. */
export async function readSnapshot(
  { api, rooms, invites }: Pick<SyncContext, 'api' | 'rooms' | 'invites'>,
  signal: AbortSignal,
): Promise<string> {
  const answer = await sync({ api }, { filter: filterOf(1), timeout: '0' }, signal)
  takeAccount(answer, { rooms })
  const { join, invite } = objectOf(answer['rooms'])
  for (const [roomId, room] of Object.entries(objectOf(join))) takeState(roomId, objectOf(room), { rooms })
  invites.take(objectOf(invite))
  return positionIn(answer)
}

/** Syncs until the signal aborts or the token is refused. Never rejects. */
export async function keepSyncing(context: SyncContext, signal: AbortSignal): Promise<void> {
  const { clock, events, log, problem, state } = context
  for (let failures = 0; !signal.aborted; ) {
    const run = new AbortController()
    const release = onAbort(signal, () => run.abort())
    const works = new Set<Promise<void>>()
    try {
      const passed = () => {
        failures = 0
      }
      const all = { ...context, works, passed }
      await syncFrom(state.since ?? (await readSnapshot(context, run.signal)), all, run)
    } catch (error) {
      if (signal.aborted) break
      if (isTokenRefused(error)) return events.refused(tokenRefused())
      log.debug({ problem: connectProblem(error), failures }, 'a sync of a Matrix bot failed')
      if (!(error instanceof NotStored)) problem(connectProblem(error))
      if (isUnknownPosition(error)) await startAnew(context, signal)
      const retryMs = error instanceof MatrixRefusal ? (error.retryAfterMs ?? 0) : 0
      await sleep(clock, Math.max(retryMs, stepOf(RETRY_MS, failures++)), signal)
    } finally {
      release()
      run.abort()
      await Promise.all(works)
    }
  }
}

/** The homeserver has lost its past: messages before now come from the histories of the rooms. */
const isUnknownPosition = (error: unknown): boolean =>
  error instanceof MatrixRefusal && error.status === 400 && error.code !== undefined

async function startAnew(context: SyncContext, signal: AbortSignal): Promise<void> {
  const since = await readSnapshot(context, signal).catch(() => undefined)
  if (since === undefined) return
  await context.state.setSince(since)
  context.events.reconnected()
}

interface RunContext extends SyncContext {
  /** What is still being stored. */
  readonly works: Set<Promise<void>>
  readonly passed: () => void
}

/** Returns never: it ends by an error, also when a message cannot be stored. */
async function syncFrom(start: string, context: RunContext, run: AbortController): Promise<never> {
  const { problem, works } = context
  const inRoom = createKeyedQueue()
  let failure: unknown
  let stored = Promise.resolve()
  // The first answer has what happened while the bot was away.
  for (let since = start, isLive = false; ; isLive = true) {
    const query = { filter: filterOf(TIMELINE_EVENTS), timeout: isLive ? String(SYNC_MS) : '0', since }
    const answer = await sync(context, query, run.signal).catch((error) => {
      throw failure ?? error
    })
    const next = positionIn(answer)
    problem(undefined)
    context.passed()
    const received = receiveAnswer({ answer, since, isLive, inRoom }, context, run.signal)
    const before = stored
    stored = received
      .then(() => before)
      .then(() => (failure === undefined ? context.state.setSince(next) : undefined))
      .catch((error) => {
        failure ??= error
        run.abort()
      })
    const work = stored
    works.add(work)
    void work.then(() => works.delete(work))
    while (works.size >= OPEN_SYNCS_MAX) await Promise.race(works)
    since = next
  }
}

interface SyncAnswer {
  readonly answer: MatrixJson
  readonly since: string
  readonly isLive: boolean
  readonly inRoom: (roomId: string, work: () => Promise<void>) => Promise<void>
}

/** Resolves when every message of the answer is stored. */
async function receiveAnswer(
  { answer, since, isLive, inRoom }: SyncAnswer,
  context: RunContext,
  signal: AbortSignal,
): Promise<void> {
  const { rooms, invites } = context
  takeAccount(answer, context)
  const { join, invite, leave } = objectOf(answer['rooms'])
  const received = Object.entries(objectOf(join)).map(([roomId, room]) =>
    inRoom(roomId, async () => {
      if (signal.aborted) throw new NotStored('an earlier message could not be stored')
      await receiveRoom({ roomId, room: objectOf(room), since, isLive }, context, signal)
    }),
  )
  for (const roomId of Object.keys(objectOf(leave))) {
    rooms.leave(roomId)
    invites.remove(roomId)
  }
  invites.take(objectOf(invite))
  void invites.decide(signal)
  // All of them: a failure must not leave another one without a listener.
  const failed = (await Promise.allSettled(received)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

async function sync(
  { api }: Pick<SyncContext, 'api'>,
  query: { readonly filter: string; readonly timeout: string; readonly since?: string },
  signal: AbortSignal,
): Promise<MatrixJson> {
  const limits = { timeoutMs: Number(query.timeout) + ANSWER_MS, bytesMax: ANSWER_BYTES_MAX }
  return await api.call({ method: 'GET', path: '/client/v3/sync', query, ...limits }, signal)
}

function positionIn(answer: MatrixJson): string {
  const next = textOf(answer['next_batch'])
  if (next === undefined) throw new MatrixRefusal(502, undefined, undefined)
  return next
}

function takeAccount(answer: MatrixJson, { rooms }: Pick<SyncContext, 'rooms'>): void {
  const { events } = objectOf(answer['account_data'])
  for (const given of Array.isArray(events) ? events : []) {
    const { type, content } = objectOf(given)
    if (type === 'm.direct') rooms.setDirect(objectOf(content))
  }
}
