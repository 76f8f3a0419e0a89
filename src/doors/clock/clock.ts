/**
 * The clock door: sends the messages of schedules when their time has come. The key of a message is its schedule and its
 * time, so that two platforms on one store, or a restart, send it once.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { PushConfigs } from '../../inbox/delivery.ts'
import type { Reception } from '../../inbox/inbox.ts'
import type { Log } from '../../log.ts'
import { readEnvelope } from '../../protocol/envelope.ts'
import { createWakeUp } from '../../wait.ts'
import type { Schedule, Schedules } from '../../workspaces/schedules.ts'
import type { Door } from '../door.ts'

export interface ClockDoorOptions {
  readonly schedules: Schedules
  readonly reception: Reception
  readonly pushConfigs: Pick<PushConfigs, 'put'>
  readonly clock: Clock
  readonly log: Log
}

export interface ClockDoor extends Door {
  /** A schedule was created or changed. */
  wake(): void
  /** Sends the message of a schedule now; the id of its task. Throws `unsupported_operation` while the last run works. */
  run(schedule: Schedule): Promise<string>
}

/** A schedule that another platform changed is noticed within this time. */
const LOOK_MS_MAX = 30_000
/** After a failure, e.g. a full queue. */
const RETRY_MS = 5000
/** A time that is later than this was missed: no platform ran, or the message could not be sent. */
const LATE_MS = 60_000

export function createClockDoor(options: ClockDoorOptions): ClockDoor {
  const { schedules, clock, log } = options
  const closing = new AbortController()
  const wakeUp = createWakeUp()
  let loop: Promise<void> = Promise.resolve()

  /** Handles what is due; how long nothing has to be done after it. */
  const look = async (): Promise<number> => {
    const { due, nextAtMs } = await schedules.due(clock.nowMs())
    let hasFailed = false
    for (const schedule of due) {
      if (closing.signal.aborted) return 0
      const error = await handleDue(schedule, options).catch(toMoleculeError)
      if (error === undefined) continue
      hasFailed = true
      log.warn({ err: error, schedule: schedule.id }, 'the message of a schedule could not be sent; it is tried again')
    }
    if (hasFailed) return RETRY_MS
    return nextAtMs === undefined ? LOOK_MS_MAX : Math.min(Math.max(nextAtMs - clock.nowMs(), 0), LOOK_MS_MAX)
  }
  const keepLooking = async () => {
    while (!closing.signal.aborted) {
      const waitMs = await look().catch((error) => {
        log.warn({ err: toMoleculeError(error) }, 'the schedules could not be read; the clock looks again')
        return RETRY_MS
      })
      await wakeUp.wait(closing.signal, (callback) => clock.after(waitMs, callback))
    }
  }
  return {
    name: 'clock',
    async start() {
      loop = keepLooking()
    },
    async close() {
      closing.abort()
      await loop
    },
    wake: () => wakeUp.wake(),
    async run(schedule) {
      if (await isRunning(schedule, options)) {
        throw new MoleculeError('unsupported_operation', `the last run of ${schedule.id} has not ended yet`)
      }
      const taskId = await send(schedule, `now-${clock.nowMs()}`, options)
      await schedules.recordRun(schedule.id, taskId)
      return taskId
    },
  }
}

/** Sends the message, or leaves the time out, and stores which. Throws when the message could not be sent. */
async function handleDue(schedule: Schedule, options: ClockDoorOptions): Promise<undefined> {
  const { schedules, clock } = options
  const dueAtMs = schedule.nextAtMs ?? clock.nowMs()
  const isLate = clock.nowMs() - dueAtMs > LATE_MS
  if (isLate && schedule.missed === 'skip') {
    return await leaveOut(schedule, `${isoTime(dueAtMs)} was left out: the platform did not run then`, options)
  }
  if (await isRunning(schedule, options)) {
    return await leaveOut(schedule, `${isoTime(dueAtMs)} was left out: the run before had not ended`, options)
  }
  try {
    const taskId = await send(schedule, String(dueAtMs), options)
    await schedules.advance(schedule, { dueAtMs, run: { taskId } })
  } catch (thrown) {
    if (toMoleculeError(thrown).code !== 'not_found') throw thrown
    // The workspace was deleted.
    await schedules.remove(schedule.id)
  }
}

async function leaveOut(
  schedule: Schedule,
  note: string,
  { schedules, clock, log }: ClockDoorOptions,
): Promise<undefined> {
  log.info({ schedule: schedule.id, workspace: schedule.workspaceId }, note)
  await schedules.advance(schedule, { dueAtMs: schedule.nextAtMs ?? clock.nowMs(), note })
}

const isoTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`

/** A run that waits for a person does not hold up the next one. */
async function isRunning({ lastTaskId }: Schedule, { reception }: ClockDoorOptions): Promise<boolean> {
  if (lastTaskId === undefined) return false
  const task = await reception.task(lastTaskId, { historyLength: 0, artifacts: false })
  return task !== undefined && ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'].includes(task.status.state)
}

/** Admits the message under the key of this run, and registers the webhook of its answer; the id of its task. */
async function send(schedule: Schedule, run: string, { reception, pushConfigs }: ClockDoorOptions): Promise<string> {
  const { id, workspaceId, name, text, sameConversation, webhook } = schedule
  const key = `${id}-${run}`
  const message = {
    ...{ messageId: key, role: 'ROLE_USER', parts: [{ text }] },
    contextId: sameConversation ? id : key,
    metadata: { schedule: { id, name } },
  }
  const { taskId } = await reception.admit({
    ...{ workspaceId, principal: `schedule:${id}`, idempotencyKey: key },
    sender: { kind: 'schedule', id, name, door: 'clock' },
    envelope: readEnvelope({ jsonrpc: '2.0', id: key, method: 'SendMessage', params: { message } }),
  })
  if (webhook !== undefined) {
    const config = { id: 'schedule', taskId, ...webhook }
    await pushConfigs.put({ workspaceId, version: '1.0', config, afterSeq: 0 })
  }
  return taskId
}
