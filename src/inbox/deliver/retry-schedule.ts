/** When a push that failed is tried again: the delay doubles with each try, until the platform gives up. */
import { backoffMs } from '../../backoff.ts'

/** After this many calls of a webhook, or after this long, the platform gives up and shows the failure. */
const TRIES_MAX = 10
export const GIVE_UP_MS = 24 * 3600_000
const RETRY_MS = 2000
const RETRY_MS_MAX = 3600_000

/** `tries` counts the failed one; `failingMs` is the time since the first. */
export const isGivenUp = (tries: number, failingMs: number): boolean => tries >= TRIES_MAX || failingMs >= GIVE_UP_MS

export const retryDelayMs = (tries: number): number => backoffMs(tries - 1, RETRY_MS, RETRY_MS_MAX)
