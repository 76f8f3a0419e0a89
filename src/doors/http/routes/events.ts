/**
 * A workspace's whole log as server-sent events, the pieces of replies included. One event a row of the log, its number
 * the id: who comes back with `Last-Event-ID` gets every later row once. Without one it begins now.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Activity } from '../../../inbox/readers.ts'
import type { Log } from '../../../log.ts'
import type { HttpAuth } from '../server/auth.ts'
import { logFailure } from '../server/errors.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { type SseEvent, type SseLimits, writeEvents } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'
import { viewActivityEntry } from './activity.ts'

export interface EventRouteOptions {
  readonly activity: Activity
  readonly auth: HttpAuth
  readonly waiting: WaitingCalls
  readonly clock: Clock
  readonly limits: SseLimits
  readonly log: Log
}

export function eventRoutes(options: EventRouteOptions): Hono<HttpEnv> {
  const { activity, auth, waiting, log } = options
  const routes = new Hono<HttpEnv>()
  routes.get('/workspaces/:id/events', allow(auth, 'activity.read'), async (context) => {
    const identity = context.get('identity')
    const workspaceId = context.req.param('id')
    requireOwnWorkspace(identity, workspaceId)
    const given = context.req.header('Last-Event-ID') ?? context.req.query('since')
    // Everything that can be refused is refused before the stream begins.
    const sinceSeq = await activity.resolveCursor(
      workspaceId,
      given === undefined || given === '' ? undefined : toSeq(given),
    )
    const { incoming: request, outgoing: response, requestId } = context.env
    const exchange = { request, response, requestId }
    try {
      await waiting.during({ response, identity }, (signal) =>
        writeEvents(exchange, rows(activity, { workspaceId, sinceSeq }, signal), options),
      )
    } catch (thrown) {
      // The answer has begun: all that can be told now is its end.
      logFailure(log, toMoleculeError(thrown), exchange)
      response.destroy()
    }
    return RESPONSE_ALREADY_SENT
  })
  return routes
}

async function* rows(
  activity: Activity,
  { workspaceId, sinceSeq }: { workspaceId: string; sinceSeq: number },
  signal: AbortSignal,
): AsyncIterable<SseEvent> {
  for await (const { seq, entries } of activity.follow(workspaceId, sinceSeq, signal)) {
    yield { id: String(seq), data: JSON.stringify({ seq, events: entries.map(viewActivityEntry) }) }
  }
}

function toSeq(given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new MoleculeError('invalid_request', 'Last-Event-ID must be a number that an earlier event had')
}
