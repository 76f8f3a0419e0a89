/**
 * The messages of `WS /ws`: JSON, one object each. A client subscribes with the numbers to begin after. It then receives
 * each row of each log with its number, and changes of the workspaces themselves under the name `_platform`.
 */
import { z } from 'zod'
import { PLATFORM_STREAM } from '../../../client/live-socket.ts'
import type { ActivityRow } from '../../../views/activity.ts'
import type { WorkspaceAnswer } from '../../../views/workspaces.ts'

const STREAMS_MAX = 2000
const NAME_CHARACTERS_MAX = 64
const nameSchema = z.string().max(NAME_CHARACTERS_MAX)

export const subscriptionSchema = z.strictObject({
  /** By workspace, the number to begin after; null = from now on. `_platform` has no number. */
  subscribe: z
    .record(nameSchema, z.int().min(0).nullable())
    .refine((map) => Object.keys(map).length <= STREAMS_MAX, `must not name more than ${STREAMS_MAX}`),
  /** Also every workspace that is not named: from now on, or from its beginning. New ones from their beginning. */
  others: z.enum(['now', 'beginning']).optional(),
  /** Workspaces whose events are sent no more. A name that is also in `subscribe` begins anew. */
  unsubscribe: z.array(nameSchema).max(STREAMS_MAX).optional(),
})

export type Subscription = z.output<typeof subscriptionSchema>

export const subscribedMessage = (workspace: string, seq: number): string =>
  JSON.stringify({ type: 'subscribed', workspace, seq })

/** The text of a row, made once for all its readers. */
const eventsMessages = new WeakMap<ActivityRow, string>()

export function eventsMessage(workspace: string, row: ActivityRow): string {
  const known = eventsMessages.get(row)
  if (known !== undefined) return known
  const { seq, entries } = row
  const text = JSON.stringify({ type: 'events', workspace, seq, events: entries })
  eventsMessages.set(row, text)
  return text
}

/** The workspace is deleted and all of its log was sent. */
export const endedMessage = (workspace: string): string => JSON.stringify({ type: 'ended', workspace })

export const snapshotMessage = (workspaces: readonly WorkspaceAnswer[]): string =>
  JSON.stringify({ type: 'snapshot', workspace: PLATFORM_STREAM, workspaces })

export const changedMessage = (type: 'created' | 'changed', id: string, state: WorkspaceAnswer): string =>
  JSON.stringify({ type, workspace: PLATFORM_STREAM, id, state })

export const deletedMessage = (id: string): string =>
  JSON.stringify({ type: 'deleted', workspace: PLATFORM_STREAM, id })

/** The list of `GET /needs-you` has changed. */
export const needsYouMessage = (count: number): string =>
  JSON.stringify({ type: 'needs_you', workspace: PLATFORM_STREAM, count })

/** `status` is the status that HTTP would answer: 410 for a number whose rows were pruned. */
export function errorMessage(status: number, body: unknown, workspace?: string): string {
  return JSON.stringify({ type: 'error', workspace, status, ...(body as object) })
}
