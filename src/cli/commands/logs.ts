/**
 * `molecule logs`: the platform's log file on this machine, or what happened in a workspace. Following goes on where
 * the last lines ended, through a rotation of the file and through a restart of the platform.
 */
import { join } from 'node:path'
import type { ActivityView } from '../../client/platform.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { followActivity } from '../follow-activity.ts'
import { LOG_FILE, readableLine } from '../log-lines.ts'
import { tailFile } from '../log-tail.ts'
import { withoutControls } from '../output.ts'
import { resolveWorkspace } from '../platform-access.ts'
import type { Define, Scene } from '../scene.ts'

const LINES_DEFAULT = 50
const LINES_MAX = 500

export const define: Define = (command, scene) => {
  command
    .argument('[workspace]', 'id or name; without one the log of the platform on this machine')
    .option('-f, --follow', 'go on with what comes')
    .option('-n, --lines <number>', `how many of the last lines, at most ${LINES_MAX} (${LINES_DEFAULT})`)
    .action(async (workspace: string | undefined, options: LogOptions) => logs(await scene(), workspace, options))
}

interface LogOptions {
  readonly follow?: boolean
  readonly lines?: string
}

async function logs(scene: Scene, workspace: string | undefined, { follow = false, lines }: LogOptions): Promise<void> {
  const count = lines === undefined ? LINES_DEFAULT : toCount(lines)
  const stop = new AbortController()
  const interrupt = () => stop.abort()
  process.once('SIGINT', interrupt)
  try {
    const wish = { count, follow, signal: stop.signal }
    if (workspace === undefined) await platformLog(scene, wish)
    else await workspaceLog(scene, workspace, wish)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

interface Wish {
  readonly count: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

async function platformLog({ terminal, output, dataDir }: Scene, wish: Wish): Promise<void> {
  const path = join(dataDir, LOG_FILE)
  const show = (line: string) => terminal.out(output === 'table' ? readableLine(line) : `${line}\n`)
  for await (const line of tailFile(path, wish)) show(line)
}

async function workspaceLog({ platform, terminal, output }: Scene, workspace: string, wish: Wish): Promise<void> {
  const client = platform()
  const id = await resolveWorkspace(client, workspace)
  const { activity, next } = await client.activity(id, { since: 0, limit: wish.count, newest: true })
  const show = (entry: ActivityView) =>
    terminal.out(output === 'table' ? sentence(entry) : `${JSON.stringify(entry)}\n`)
  for (const entry of activity.slice(-wish.count)) show(entry)
  if (!wish.follow) return
  const away = (error: MoleculeError) => terminal.err(`${error.message}; trying again\n`)
  for await (const entry of followActivity({ client, id, since: next, clock: systemClock, away }, wish.signal)) {
    if (entry.type !== 'text') show(entry)
  }
}

function sentence({ at, type, state, name, text, task_id: task, by }: ActivityView): string {
  const stateWord = state?.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', ' ')
  const words = [at, type, name, stateWord, text && withoutControls(text).replaceAll(/\s+/g, ' '), by && `by ${by}`]
  return `${[...words, task && `(${task})`].filter((word) => word).join(' ')}\n`
}

function toCount(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= LINES_MAX) return count
  throw new MoleculeError(
    'invalid_request',
    `--lines takes a number from 1 to ${LINES_MAX}, not ${JSON.stringify(text)}`,
  )
}
