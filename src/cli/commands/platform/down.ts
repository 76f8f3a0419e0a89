/**
 * `molecule down`: stops the platform of this data folder, as Ctrl-C in its terminal does: running turns get the time of
 * `--drain` to finish. It signals only the process that `platform.json` records, compared by its start time. Exit code 1
 * when no platform runs.
 */
import { systemClock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { sleep } from '../../../wait.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { isFolderLocked, type RunningPlatform, readRunningPlatform } from '../../data-folder/data-folder.ts'
import { isAlive, isAtUrl } from '../../platform/recorded-platform.ts'
import { withProgress } from '../../terminal/progress.ts'

const POLL_MS = 100
/** A second signal ends the drain. A person cannot press Ctrl-C twice in less, so less may count as one. */
const SECOND_SIGNAL_MS = 1500
const THIRD_SIGNAL_MS = 5000

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--now', 'also stop the running turns; their messages run again at the next start')
    .action(async ({ now }: { now?: true }) => down(await openContext(), now === true))
}

async function down(context: CommandContext, now: boolean): Promise<void> {
  const running = await requireRunning(context)
  const { pid, url } = running
  const text = `stopping the platform at ${url}${now ? '' : '; its running turns finish first'}`
  await withProgress(context.terminal, text, async () => {
    signal(running)
    for (const delayMs of now ? [SECOND_SIGNAL_MS, THIRD_SIGNAL_MS] : []) {
      if (await hasStopped(running, context, delayMs)) return
      signal(running)
    }
    await hasStopped(running, context, Number.POSITIVE_INFINITY)
  })
  await context.show({ stopped: { pid, url } }, () => `The platform at ${url} has stopped.\n`)
}

/** True once it has stopped; false after `waitMs`. */
async function hasStopped(running: RunningPlatform, { dataDir }: CommandContext, waitMs: number): Promise<boolean> {
  const startMs = systemClock.monotonicMs()
  // A process that ended and whose parent does not look at it still has its pid, and its folder is free.
  const isGone = async () =>
    !(await isAlive(running)) || (readRunningPlatform(dataDir)?.pid !== running.pid && !isFolderLocked(dataDir))
  while (!(await isGone())) {
    if (systemClock.monotonicMs() - startMs >= waitMs) return false
    await sleep(systemClock, POLL_MS)
  }
  return true
}

async function requireRunning({ dataDir, apiUrl }: CommandContext): Promise<RunningPlatform> {
  const running = readRunningPlatform(dataDir)
  if (running !== undefined && (await isAlive(running))) {
    if (isAtUrl(running, apiUrl)) return running
    const message = `"molecule down" stops the platform of the data folder ${dataDir}, which is at ${running.url} and not at ${apiUrl}; leave out --api-url (MOLECULE_API_URL)`
    throw new MoleculeError('invalid_request', message)
  }
  if (isFolderLocked(dataDir)) {
    const message = `a platform on the data folder ${dataDir} is starting or stopping; try again in a moment`
    throw new MoleculeError('in_use', message, { retryable: true })
  }
  throw new MoleculeError('not_found', `no platform runs on the data folder ${dataDir}`)
}

function signal({ pid }: RunningPlatform): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    // It has ended in this moment.
    if (code === 'ESRCH') return
    const message = `the platform (process ${pid}) belongs to another user; stop it as that user`
    throw new MoleculeError('forbidden', message, { cause })
  }
}
