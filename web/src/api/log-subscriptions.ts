/**
 * Which logs the page follows over its one socket, and from where. Pure. Each follower gets every event after its number,
 * once and in order, also after a reconnect. While the platform has not confirmed the last subscription of a log, events
 * of it belong to an earlier subscription and are ignored: they come again.
 */
import type { ActivityView } from '../../../src/client/views.ts'

/** A message of `WS /ws`; `type` says which other fields it has. */
export interface LiveMessage {
  readonly type: string
  readonly workspace?: string
  readonly [field: string]: unknown
}

/** A message to the platform. */
export interface SentSubscription {
  readonly subscribe: Readonly<Record<string, number | null>>
  readonly unsubscribe?: readonly string[]
}

export interface LogFollower {
  readonly onEvents: (events: readonly ActivityView[]) => void
  /** Events before the oldest kept one are gone: read the history again. */
  readonly onGap: () => void
}

export interface LogSubscriptions {
  /** Calls back with every event after this number. The returned function ends it. */
  follow(workspaceId: string, after: number, follower: LogFollower): () => void
  /** For a new connection: what is followed, from the last number of each log. */
  all(): Readonly<Record<string, number>>
  take(message: LiveMessage): void
}

interface FollowedLog {
  /** The last number that each follower has seen. */
  readonly followers: Map<LogFollower, number>
  /** The number after which the confirmed subscription goes on. */
  seq: number
}

/** `send` does nothing while there is no connection: `all` is sent when there is one. */
export function createLogSubscriptions(send: (message: SentSubscription) => void): LogSubscriptions {
  const logs = new Map<string, FollowedLog>()
  /** Subscriptions of this connection that are not confirmed. */
  const unconfirmed = new Map<string, number>()
  const expect = (id: string, change: 1 | -1) => unconfirmed.set(id, Math.max(0, (unconfirmed.get(id) ?? 0) + change))
  const subscribe = (id: string, after: number | null) => {
    expect(id, 1)
    send({ subscribe: { [id]: after } })
  }
  const advance = (log: FollowedLog, seq: number, onBehind: (follower: LogFollower) => void) => {
    log.seq = seq
    for (const [follower, seen] of log.followers) {
      if (seen >= seq) continue
      log.followers.set(follower, seq)
      onBehind(follower)
    }
  }
  return {
    follow(id, after, follower) {
      const log = logs.get(id) ?? { followers: new Map<LogFollower, number>(), seq: Number.POSITIVE_INFINITY }
      logs.set(id, log)
      log.followers.set(follower, after)
      if (after < log.seq) {
        log.seq = after
        subscribe(id, after)
      }
      return () => {
        log.followers.delete(follower)
        if (log.followers.size > 0 || logs.get(id) !== log) return
        logs.delete(id)
        send({ subscribe: {}, unsubscribe: [id] })
      }
    },
    all() {
      unconfirmed.clear()
      for (const [id, log] of logs) {
        log.seq = Math.min(...log.followers.values())
        expect(id, 1)
      }
      return Object.fromEntries([...logs].map(([id, { seq }]) => [id, seq]))
    },
    take({ type, workspace: id = '', ...message }) {
      const log = logs.get(id)
      if (type === 'subscribed' || type === 'error') expect(id, -1)
      if (log === undefined || (unconfirmed.get(id) ?? 0) > 0) return
      const seq = Number(message['seq'])
      // From now on: what came before is read with the history.
      if (type === 'subscribed' && seq > log.seq) advance(log, seq, ({ onGap }) => onGap())
      if (type === 'error' && message['status'] === 410) subscribe(id, null)
      if (type === 'events') {
        const events = message['events'] as readonly ActivityView[]
        advance(log, seq, ({ onEvents }) => onEvents(events))
      }
    },
  }
}
