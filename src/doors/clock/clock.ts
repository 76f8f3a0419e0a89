/**
 * The clock door: sends the messages of schedules when their time has come. The key of a message is its schedule and its
 * time, so that two platforms on one store, or a restart, send it once. The message, the webhook of its answer and the
 * schedule's note of the run are one transaction, so that a crash loses none of them.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Log } from '../../log.ts'
import { envelopeOf } from '../../protocol/envelope.ts'
import { createWakeUp } from '../../wait.ts'
import { SCHEDULE_PUSH_ID, type Schedule, type Schedules } from '../../workspaces/schedules.ts'
import { reportAddress } from '../chat/homes/report-to.ts'
import type { Door } from '../door.ts'

export interface ClockDoorOptions {
  readonly schedules: Schedules
  readonly reception: Reception
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
      return await send(schedule, { atMs: clock.nowMs() }, options)
    },
  }
}

/** Sends the message, or leaves the time out, and stores which. Throws when the message could not be sent. */
async function handleDue(schedule: Schedule, options: ClockDoorOptions): Promise<undefined> {
  const { schedules, clock, log } = options
  const dueAtMs = schedule.nextAtMs ?? clock.nowMs()
  const reason = (await isSent(schedule, dueAtMs, options)) ? undefined : await whyLeftOut(schedule, dueAtMs, options)
  if (reason !== undefined) {
    const note = `${isoTime(dueAtMs)} was left out: ${reason}`
    log.info({ schedule: schedule.id, workspace: schedule.workspaceId }, note)
    await schedules.leaveOut(schedule, dueAtMs, note)
    return
  }
  try {
    await send(schedule, { dueAtMs }, options)
  } catch (thrown) {
    if (toMoleculeError(thrown).code !== 'not_found') throw thrown
    // The workspace was deleted.
    await schedules.remove(schedule.id)
  }
}

/** Undefined when the message is to be sent. */
async function whyLeftOut(schedule: Schedule, dueAtMs: number, options: ClockDoorOptions): Promise<string | undefined> {
  const isLate = options.clock.nowMs() - dueAtMs > LATE_MS
  if (isLate && schedule.missed === 'skip') return 'the platform did not run then'
  return (await isRunning(schedule, options)) ? 'the run before had not ended' : undefined
}

const isoTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`

/** A run that waits for a person does not hold up the next one. */
async function isRunning({ lastTaskId }: Schedule, { reception }: ClockDoorOptions): Promise<boolean> {
  if (lastTaskId === undefined) return false
  const task = await reception.task(lastTaskId, { historyLength: 0, artifacts: false })
  return task !== undefined && ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'].includes(task.status.state)
}

/** A time of the schedule, or another moment at which a person runs it. */
type RunTime = { readonly dueAtMs: number } | { readonly dueAtMs?: undefined; readonly atMs: number }

const keyOf = ({ id }: Schedule, time: RunTime): string =>
  time.dueAtMs === undefined ? `${id}-now-${time.atMs}` : `${id}-${time.dueAtMs}`
const principalOf = ({ id }: Schedule): string => `schedule:${id}`

/** Prevents the note that a time was left out, and a lost webhook, when that time's message is in the store already. */
function isSent(schedule: Schedule, dueAtMs: number, { reception }: ClockDoorOptions): Promise<boolean> {
  const { workspaceId } = schedule
  return reception.isAdmitted({ workspaceId, principal: principalOf(schedule), key: keyOf(schedule, { dueAtMs }) })
}

/** Admits the message under the key of this run, with the webhook of its answer and the note of the run; its task's id. */
async function send(schedule: Schedule, time: RunTime, options: ClockDoorOptions): Promise<string> {
  const { id, workspaceId, name, text, sameConversation, webhook, reportTo } = schedule
  const key = keyOf(schedule, time)
  const contextId = sameConversation ? id : key
  const metadata = { schedule: { id, name, ...(reportTo !== undefined && { reports: true }) } }
  const { taskId } = await options.reception.admit({
    workspaceId,
    principal: principalOf(schedule),
    idempotencyKey: key,
    sender: { kind: 'schedule', id, name, door: 'clock' },
    envelope: envelopeOf({ messageId: key, parts: [{ text }], contextId, metadata }),
    ...(reportTo !== undefined && { replyTo: reportAddress(reportTo) }),
    ...(webhook !== undefined && { push: { version: '1.0', config: { id: SCHEDULE_PUSH_ID, ...webhook } } }),
    commitWith: await options.schedules.prepareRun(schedule, time.dueAtMs),
  })
  return taskId
}
