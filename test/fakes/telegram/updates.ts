/** The queue of updates of the fake Bot API: they stay until a later `getUpdates` confirms them by its offset. */
import type { ServerResponse } from 'node:http'
import { BotApiError, type Parameters } from './bot-api.ts'

const UPDATES_PER_CALL = 100
/** A bot that polls is connected; between two polls it may take this long. */
const POLL_GAP_MS = 2000

/** The queue of updates and the one call that waits for them. */
export function createUpdates() {
  const pending: { update_id: number }[] = []
  let waiting: ServerResponse | undefined
  let polledMs = 0
  let number = 5000
  /** The service gives no other updates. */
  let allowed: readonly string[] = []
  const flush = () => {
    if (waiting === undefined || pending.length === 0) return
    send(waiting, 200, { ok: true, result: pending.slice(0, UPDATES_PER_CALL) })
    waiting = undefined
  }
  const words = 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
  /** True when a call waited, and has ended. */
  const endWaiting = (): boolean => {
    if (waiting === undefined) return false
    sendError(waiting, new BotApiError(409, words))
    waiting = undefined
    return true
  }
  /** Between two polls of the bot the next one meets the other program. */
  let isElsewhere = false
  return {
    pending,
    conflict() {
      isElsewhere = !endWaiting()
    },
    isPolled: () => waiting !== undefined || Date.now() - polledMs < POLL_GAP_MS,
    add(update: object, twice = false) {
      const added = { update_id: ++number, ...update }
      pending.push(added, ...(twice ? [added] : []))
      flush()
    },
    get allowed() {
      return allowed
    },
    poll({ offset = 0, timeout = 0, allowed_updates = [] }: Parameters, response: ServerResponse) {
      endWaiting()
      allowed = allowed_updates
      const left = pending.filter(
        ({ update_id, ...update }) =>
          update_id >= offset && Object.keys(update).every((kind) => allowed.includes(kind)),
      )
      pending.splice(0, pending.length, ...left)
      polledMs = Date.now()
      waiting = response
      if (isElsewhere) {
        isElsewhere = false
        endWaiting()
        return
      }
      const timer = setTimeout(() => {
        if (waiting !== response) return
        waiting = undefined
        send(response, 200, { ok: true, result: [] })
      }, timeout * 1000)
      timer.unref()
      response.on('close', () => {
        clearTimeout(timer)
        if (waiting === response) waiting = undefined
        if (!response.writableFinished) polledMs = 0
      })
      flush()
    },
  }
}

export function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export function sendError(response: ServerResponse, { code, message, parameters }: BotApiError): void {
  send(response, code, { ok: false, error_code: code, description: message, ...(parameters && { parameters }) })
}
