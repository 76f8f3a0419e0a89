/**
 * The activity of a workspace over HTTP: read its entries, add a note, set its status line, which its card and its log show.
 * And its log as server-sent events, chunks of replies included: one event for each row, with the row's number as its id,
 * so that a reader that reconnects with `Last-Event-ID` receives every later row once. Without an id the stream begins
 * now. The same events over a WebSocket are in `socket/`; here is only its route.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import {
  addNote,
  connectSocket,
  followEvents,
  readActivity as readEndpoint,
  setStatusText,
} from '../../../api/activity.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { maskTokens } from '../../../token-mask.ts'
import { type ActivityRow, readActivity } from '../../../views/activity.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import { logFailure } from '../server/errors.ts'
import { type SseEvent, writeEvents } from '../server/sse.ts'
import { serve } from './route.ts'

/** The upgrade itself is served by `socket/sockets.ts`, with this path and this access rule. */
export const socketRoute = serve(connectSocket, ({ context }) => {
  const message = 'this is a WebSocket: ask for it with "Upgrade: websocket"'
  const error = { code: 'invalid_request', message, id: context.env.requestId }
  return context.json({ error }, 426, { Upgrade: 'websocket', Connection: 'Upgrade' })
})

export const activityRoutes = [
  serve(readEndpoint, ({ params, query }, { store }) => readActivity(store, { ...query, workspaceId: params.id })),
  serve(addNote, async ({ params, identity, body }, { activity }) => ({
    seq: await activity.addNote(params.id, { ...maskTokens(body), by: identity.name }),
  })),
  serve(setStatusText, async ({ params: { id }, identity, body }, { registry, activity }) => {
    const line = maskTokens(body.text.replaceAll(/\s+/g, ' ').trim())
    await registry.setStatusText(id, line)
    await activity.addNote(id, { type: 'status_text', text: line, by: identity.name })
    return { status_text: line }
  }),
  serve(followEvents, async ({ context, params, query, identity }, app) => {
    const given = context.req.header('Last-Event-ID') ?? query.since
    // Every refusal comes before the stream begins: afterwards the status is already sent.
    const sinceSeq = await app.logs.resolveCursor(
      params.id,
      given === undefined || given === '' ? undefined : toSeq(given),
    )
    app.waitingCalls.countStream(context.env.outgoing, identity)
    const { incoming: request, outgoing: response, requestId } = context.env
    const exchange = { request, response, requestId }
    try {
      await app.waitingCalls.run({ response, identity }, (signal) =>
        writeEvents(exchange, rows(app.logs, { workspaceId: params.id, sinceSeq }, signal), app),
      )
    } catch (thrown) {
      // The answer has begun, so no error can be sent: close the connection.
      logFailure(app.log, toMoleculeError(thrown), exchange)
      response.destroy()
    }
    return RESPONSE_ALREADY_SENT
  }),
  socketRoute,
]

async function* rows(
  logs: WorkspaceLogs,
  { workspaceId, sinceSeq }: { workspaceId: string; sinceSeq: number },
  signal: AbortSignal,
): AsyncIterable<SseEvent> {
  for await (const row of logs.follow(workspaceId, sinceSeq, signal)) yield sseEventOf(row)
}

/** The text of a row, made once for all its readers. */
const sseEvents = new WeakMap<ActivityRow, SseEvent>()

function sseEventOf(row: ActivityRow): SseEvent {
  const known = sseEvents.get(row)
  if (known !== undefined) return known
  const { seq, entries } = row
  const event = { id: String(seq), data: JSON.stringify({ seq, events: entries }) }
  sseEvents.set(row, event)
  return event
}

function toSeq(given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new MoleculeError('invalid_request', 'Last-Event-ID must be the number of an earlier event')
}
