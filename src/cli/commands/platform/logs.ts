/**
 * `molecule logs`: the platform's log file on this machine, or the activity of a workspace. `--follow` continues after the
 * last lines, through a rotation of the file and a restart of the platform.
 */
import { join } from 'node:path'
import type { ActivityView } from '../../../client/views.ts'
import { systemClock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { printable, printableName, withoutControls } from '../../../printable.ts'
import { taskStateText } from '../../../protocol/a2a.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { formatLogLineWithTime, LOG_FILE } from '../../data-folder/log-format.ts'
import { type TailFileOptions, tailFile } from '../../data-folder/tail-file.ts'
import { followActivity } from '../../platform/follow-activity.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'

const LINES_DEFAULT = 50
const LINES_MAX = 500

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[workspace]', 'id or name; without it, the log of the platform on this machine')
    .option('-f, --follow', 'show new lines as they come')
    .option('-n, --lines <number>', `how many of the last lines, at most ${LINES_MAX} (${LINES_DEFAULT})`)
    .action(async (workspace: string | undefined, options: LogOptions) => logs(await openContext(), workspace, options))
}

interface LogOptions {
  readonly follow?: boolean
  readonly lines?: string
}

async function logs(
  context: CommandContext,
  workspace: string | undefined,
  { follow = false, lines }: LogOptions,
): Promise<void> {
  const count = lines === undefined ? LINES_DEFAULT : parseLineCount(lines)
  const stop = new AbortController()
  const interrupt = () => stop.abort()
  process.once('SIGINT', interrupt)
  try {
    const options = { count, follow, signal: stop.signal }
    if (workspace === undefined) await platformLog(context, options)
    else await workspaceLog(context, workspace, options)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

async function platformLog({ terminal, output, dataDir }: CommandContext, options: TailFileOptions): Promise<void> {
  const path = join(dataDir, LOG_FILE)
  const show = (line: string) => terminal.out(output === 'table' ? formatLogLineWithTime(line) : `${line}\n`)
  for await (const line of tailFile(path, options)) show(line)
}

async function workspaceLog(
  { platform, terminal, output }: CommandContext,
  workspace: string,
  options: TailFileOptions,
): Promise<void> {
  const client = platform()
  const id = await resolveWorkspaceId(client, workspace)
  const { activity, next } = await client.call('GET /workspaces/{id}/activity', {
    id,
    limit: options.count,
    newest: true,
  })
  const show = (entry: ActivityView) =>
    terminal.out(output === 'table' ? activityLine(entry) : `${JSON.stringify(entry)}\n`)
  for (const entry of activity.slice(-options.count)) show(entry)
  if (!options.follow) return
  const onUnreachable = (error: MoleculeError) => terminal.err(`${withoutControls(error.message)}; retrying\n`)
  const followed = { client, id, since: next, clock: systemClock, onUnreachable }
  for await (const entries of followActivity(followed, options.signal)) {
    for (const entry of entries) if (entry.type !== 'text') show(entry)
  }
}

function activityLine({ at, type, state, name, subject, text, task_id: task, by }: ActivityView): string {
  const oneLine = (words: string | undefined) => words && withoutControls(words).replaceAll(/\s+/g, ' ')
  const command = subject && printable(subject.replaceAll(/\s+/g, ' '))
  const tool = name && printableName(name)
  const fields = [
    at,
    type,
    tool,
    state && taskStateText(state),
    command,
    oneLine(text),
    by && `by ${printableName(by)}`,
  ]
  return `${[...fields, task && `(${task})`].filter((field) => field).join(' ')}\n`
}

function parseLineCount(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= LINES_MAX) return count
  throw new MoleculeError(
    'invalid_request',
    `--lines takes a number from 1 to ${LINES_MAX}, not ${JSON.stringify(text)}`,
  )
}
