/**
 * The webhook door: it only goes out. For each push configuration that is due it follows the task's log from where the
 * receiver last was and tells it event by event, in order, one in flight; a failure waits and is tried again. Everything
 * that must be remembered is in the config's cursor, so a restart goes on where this process stopped.
 */
import type { Outbound } from '../../client/outbound.ts'
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { PushConfigs, PushCursor, PushKey, StoredPush } from '../../inbox/delivery.ts'
import type { Reception } from '../../inbox/inbox.ts'
import type { Log } from '../../log.ts'
import { sleep } from '../../wait.ts'
import type { Door } from '../door.ts'
import { sendWebhook } from './send-webhook.ts'
import { webhookEvents } from './webhook-events.ts'

export interface WebhooksOptions {
  readonly configs: PushConfigs
  readonly reception: Reception
  readonly outbound: Outbound
  readonly clock: Clock
  readonly log: Log
}

export interface Webhooks extends Door {
  /** There is a new configuration, or a task goes on: look now. */
  wake(): void
}

/** A missed wake-up, and the end of a wait, are noticed within this. */
const POLL_MS = 1000
/** A third of the claim's time. */
const RENEW_MS = 20_000
/** Tasks followed at once; what is beyond waits for one of them to end. */
const TASKS_FOLLOWED_MAX = 2000

export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { configs, clock, log } = options
  const followed = new Map<string, { readonly key: PushKey; readonly done: Promise<void> }>()
  const closing = new AbortController()
  const warn = (thrown: unknown, message: string) => log.warn({ err: toMoleculeError(thrown) }, message)
  let woken = new AbortController()
  let loop: Promise<void> = Promise.resolve()
  let cancelRenewal: (() => void) | undefined

  const giveBack = async (push: StoredPush, thrown: unknown) => {
    warn(thrown, 'a webhook could not be looked after')
    // A task that is gone has nothing more to tell; anything else is tried again when the claim runs out.
    if (toMoleculeError(thrown).code === 'not_found') await configs.remove(push)
  }
  const follow = (push: StoredPush) => {
    const name = JSON.stringify([push.taskId, push.id])
    const before = followed.get(name)?.done ?? Promise.resolve()
    const done = before
      .then(() => sendEvents(push, options, closing.signal))
      .catch((thrown: unknown) => giveBack(push, thrown))
      .catch((thrown: unknown) => warn(thrown, 'a webhook could not be taken off the list'))
      .finally(() => {
        if (followed.get(name)?.done === done) followed.delete(name)
      })
    followed.set(name, { key: push, done })
  }
  const look = async () => {
    while (!closing.signal.aborted) {
      woken = new AbortController()
      try {
        for (const push of await configs.claim(TASKS_FOLLOWED_MAX - followed.size)) follow(push)
      } catch (thrown) {
        // One failing look must not end all webhooks in silence.
        warn(thrown, 'push configurations could not be read; trying again')
      }
      await sleep(clock, POLL_MS, AbortSignal.any([closing.signal, woken.signal]))
    }
  }
  const renewLater = () => {
    cancelRenewal = clock.after(RENEW_MS, () => {
      const keys = [...followed.values()].map(({ key }) => key)
      configs.renew(keys).catch((thrown: unknown) => warn(thrown, 'webhook claims could not be renewed'))
      renewLater()
    })
  }
  return {
    name: 'webhooks',
    wake: () => woken.abort(),
    start() {
      renewLater()
      loop = look()
      return Promise.resolve()
    },
    async close() {
      closing.abort()
      cancelRenewal?.()
      await loop
      await Promise.all([...followed.values()].map(({ done }) => done))
    },
  }
}

/** Tells a receiver what it has not been told, until the task rests, a try fails, or the config is another. */
async function sendEvents(push: StoredPush, options: WebhooksOptions, signal: AbortSignal): Promise<void> {
  const { configs, reception, outbound, log } = options
  for await (const told of webhookEvents(reception.follow(push.taskId, 0, signal))) {
    if (!isAfter(told, push.cursor)) continue
    // Looked at before each call: a receiver that was taken off the list must hear no more.
    if (!(await configs.isCurrent(push))) return
    const problem = await sendWebhook({ push, event: told.event }, outbound, signal)
    if (signal.aborted) break
    if (problem !== undefined) {
      const next = await configs.fail(push, problem)
      const fields = { taskId: push.taskId, configId: push.id, problem }
      if (next === 'given_up') log.warn(fields, 'a webhook was given up')
      else log.debug(fields, 'a webhook will be tried again')
      return
    }
    if (!(await configs.advance(push, told))) return
  }
  if (signal.aborted) await configs.release(push)
  else await configs.idle(push)
}

function isAfter(told: PushCursor, cursor: PushCursor): boolean {
  return told.seq > cursor.seq || (told.seq === cursor.seq && told.k > cursor.k)
}
