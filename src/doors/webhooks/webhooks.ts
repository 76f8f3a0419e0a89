/**
 * The webhook door, which only sends. For each push config that is due it follows the log of the task from the config's
 * cursor and sends event by event, in order, one at a time. A failed call is retried later. The cursor is stored with
 * the config, so after a restart sending goes on where this process stopped.
 */
import type { Outbound } from '../../client/outbound.ts'
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { PushConfigs, PushCursor, PushKey, StoredPush } from '../../inbox/delivery.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Log } from '../../log.ts'
import { createWakeUp } from '../../wait.ts'
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
  /** There is a new config, or a task goes on: poll now. */
  wake(): void
}

/** A missed wake-up, or a retry that is due, is noticed within this time. */
const POLL_MS = 1000
/** A third of the time that a claim lasts. */
const RENEW_MS = 20_000
/** Tasks followed at once. Further configs stay unclaimed until one of these ends. */
const TASKS_FOLLOWED_MAX = 2000

export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { configs, clock, log } = options
  const followed = new Map<string, { readonly key: PushKey; readonly done: Promise<void> }>()
  const closing = new AbortController()
  const wakeUp = createWakeUp()
  const warn = (thrown: unknown, message: string) => log.warn({ err: toMoleculeError(thrown) }, message)
  let loop: Promise<void> = Promise.resolve()
  let cancelRenewal: (() => void) | undefined

  const onFailure = async (push: StoredPush, thrown: unknown) => {
    warn(thrown, 'a webhook failed unexpectedly')
    // The task is gone, so no event will follow. Any other failure is retried when the claim expires.
    if (toMoleculeError(thrown).code === 'not_found') await configs.remove(push)
  }
  const follow = (push: StoredPush) => {
    const name = JSON.stringify([push.taskId, push.id])
    const previous = followed.get(name)?.done ?? Promise.resolve()
    const done = previous
      .then(() => sendEvents(push, options, closing.signal))
      .catch((thrown: unknown) => onFailure(push, thrown))
      .catch((thrown: unknown) => warn(thrown, 'the push config of a task that is gone could not be removed'))
      .finally(() => {
        if (followed.get(name)?.done === done) followed.delete(name)
      })
    followed.set(name, { key: push, done })
  }
  const poll = async () => {
    while (!closing.signal.aborted) {
      try {
        for (const push of await configs.claim(TASKS_FOLLOWED_MAX - followed.size)) follow(push)
      } catch (thrown) {
        // A rejection here would silently end all webhooks.
        warn(thrown, 'push configs could not be read; trying again')
      }
      await wakeUp.wait(closing.signal, (callback) => clock.after(POLL_MS, callback))
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
    wake: wakeUp.wake,
    start() {
      renewLater()
      loop = poll()
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

/** Sends the events after the cursor until the task rests, a call fails, or the config was replaced or removed. */
async function sendEvents(push: StoredPush, options: WebhooksOptions, signal: AbortSignal): Promise<void> {
  const { configs, reception, outbound, clock, log } = options
  const entries = reception.follow(push.taskId, { afterSeq: 0, wholeReplies: true }, signal)
  for await (const next of webhookEvents(entries)) {
    if (!isAfter(next, push.cursor)) continue
    // Checked before each call: a receiver whose config was removed must receive nothing more.
    if (!(await configs.isCurrent(push))) return
    const problem = await sendWebhook({ ...next, push, nowMs: clock.nowMs() }, outbound, signal)
    if (signal.aborted) break
    if (problem !== undefined) {
      const result = await configs.fail(push, problem)
      const fields = { taskId: push.taskId, configId: push.id, problem }
      if (result === 'given_up') log.warn(fields, 'a webhook was given up')
      else log.debug(fields, 'a webhook will be retried')
      return
    }
    if (!(await configs.advance(push, next))) return
  }
  if (signal.aborted) await configs.release(push)
  else await configs.idle(push)
}

function isAfter(position: PushCursor, cursor: PushCursor): boolean {
  return position.seq > cursor.seq || (position.seq === cursor.seq && position.k > cursor.k)
}
