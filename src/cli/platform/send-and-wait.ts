/**
 * Sends a message and waits for the end of its task, without a time limit. A blocking call returns an unfinished task
 * after a while; sending the same message id again attaches to that task, so a retry never starts a second one.
 * A turn that waits for a permission continues once an owner answers, so this waits for it too.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { type RetryOptions, withRetries } from '../../client/retry.ts'
import { readStory } from '../../client/story.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Message, type Task } from '../../protocol/a2a.ts'
import type { TraceContext } from '../../protocol/trace-context.ts'
import { sleep } from '../../wait.ts'

const POLL_MS = 1000

export interface PlatformSendOptions extends RetryOptions {
  readonly platform: PlatformClient
  readonly workspaceId: string
  readonly message: Message
  /** The trace that the message continues. */
  readonly trace?: TraceContext | undefined
  /** False: returns the task as soon as it is admitted. */
  readonly wait: boolean
}

export async function sendAndWait({
  platform,
  workspaceId,
  message,
  trace,
  wait,
  ...retry
}: PlatformSendOptions): Promise<Task> {
  const send = createPatientSend(() => platform.sendMessage(workspaceId, message, { wait, trace }), retry)
  for (;;) {
    const task = await send()
    if (!wait || (await withRetries(() => hasEnded(platform, task), retry))) return task
    // Prevents a busy loop: a paused or offline workspace answers a blocking call at once.
    await sleep(retry.clock, POLL_MS)
  }
}

/** A call that lasted this long before it broke had reached the platform, which waited for the task. */
const ACCEPTED_AFTER_MS = 2000
/** Rounds of retries after a lost connection: about an hour. */
const ROUNDS_MAX = 120

/**
 * Sends, and retries a few times. Once the platform has the message, a lost connection is no reason to give up: the task
 * goes on without it, and the next call finds it again.
 */
function createPatientSend(send: () => Promise<Task>, retry: RetryOptions): () => Promise<Task> {
  const { clock } = retry
  let accepted = false
  const timedSend = async () => {
    const startMs = clock.monotonicMs()
    try {
      return await send()
    } finally {
      accepted ||= clock.monotonicMs() - startMs >= ACCEPTED_AFTER_MS
    }
  }
  return async () => {
    for (let round = 1; ; round++) {
      try {
        const task = await withRetries(timedSend, retry)
        accepted = true
        return task
      } catch (thrown) {
        const isLost = thrown instanceof MoleculeError && thrown.retryable && accepted
        if (!isLost || round >= ROUNDS_MAX || retry.signal?.aborted) throw thrown
      }
    }
  }
}

interface OutageOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** How long the platform may be away, each time. */
  readonly reconnectMs: number
  /** Called once when the platform goes away, with the reason. */
  readonly onOutage: (error: MoleculeError) => void
}

export interface SendThroughOutageOptions extends OutageOptions {
  /** Called when the platform takes no message now, because a queue is full, before the message is sent again. */
  readonly onRefused: (error: MoleculeError) => void
}

/**
 * Sends a message, also through a restart of the platform. A message that is sent again with its id starts no second task.
 * A platform that refuses it for now is asked only a few times.
 */
export async function sendThroughOutage(
  send: () => Promise<Task>,
  { onRefused, ...options }: SendThroughOutageOptions,
): Promise<Task> {
  const { clock, signal } = options
  const retry = { clock, signal, isRetryable: isRefusal, onRetry: onRefused }
  return await withRetries(() => throughOutage(send, { ...options, isOutage: mayHaveArrived }), retry)
}

const isRefusal = ({ code }: MoleculeError): boolean => code === 'queue_full' || code === 'too_many_requests'

/** After this failure of a send it is not known whether the platform has the message. */
export const mayHaveArrived = (error: MoleculeError): boolean => error.retryable && !isRefusal(error)

export interface WaitForTaskOptions extends OutageOptions {
  readonly platform: PlatformClient
  readonly workspaceId: string
  readonly task: Task
  /** Receives the task, without its history, each time that it was read and has not ended; so the platform is back. */
  readonly onOpen: (task: Task) => void
}

/** The first delay between two reads. It grows with the age of the wait, so a long task costs few reads. */
const FIRST_POLL_MS = 50
const SHARE_OF_WAIT = 0.1

/**
 * Reads the task again and again until it has ended, also through a restart of the platform. Unlike a blocking call, this
 * sees why the task waits. Throws `canceled` on abort, and the last failure when the platform stays away.
 */
export async function waitForTask(options: WaitForTaskOptions): Promise<Task> {
  const { platform, workspaceId, clock, signal, onOpen } = options
  const startMs = clock.monotonicMs()
  let { task } = options
  while (!(await throughOutage(() => hasEnded(platform, task), options))) {
    onOpen(task)
    const delayMs = (clock.monotonicMs() - startMs) * SHARE_OF_WAIT
    await sleep(clock, Math.min(POLL_MS, Math.max(FIRST_POLL_MS, delayMs)), signal)
    if (signal.aborted) throw waitInterrupted()
    const { id } = task
    task = await throughOutage(() => platform.getTask(workspaceId, id, { historyLength: 0 }), options)
  }
  return task
}

const waitInterrupted = () => new MoleculeError('canceled', 'the wait was interrupted')

/** Repeats a call while the platform is away. Not with exponential backoff: a person waits for the moment it is back. */
async function throughOutage<T>(
  call: () => Promise<T>,
  {
    clock,
    signal,
    reconnectMs,
    onOutage,
    isOutage = ({ retryable }) => retryable,
  }: OutageOptions & { readonly isOutage?: (error: MoleculeError) => boolean },
): Promise<T> {
  const startMs = clock.monotonicMs()
  for (let tries = 1; ; tries++) {
    try {
      return await call()
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !isOutage(thrown)) throw thrown
      if (clock.monotonicMs() - startMs >= reconnectMs) throw thrown
      if (tries === 1) onOutage(thrown)
    }
    await sleep(clock, POLL_MS, signal)
    if (signal.aborted) throw waitInterrupted()
  }
}

/** True when the task is final or waits for its sender; false while its turn waits for a permission. */
async function hasEnded(platform: PlatformClient, { id, status }: Task): Promise<boolean> {
  if (isFinal(status.state)) return true
  if (!isInterrupted(status.state)) return false
  return status.state !== 'TASK_STATE_AUTH_REQUIRED' || !(await isRunning(platform, id))
}

async function isRunning(platform: PlatformClient, taskId: string): Promise<boolean> {
  try {
    const { task_state: state, steps } = await readStory(platform, taskId)
    // The answer may have come since the task was read: then the turn goes on.
    return state !== 'TASK_STATE_AUTH_REQUIRED' || steps.at(-1)?.type === 'running'
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return false
    throw thrown
  }
}
