/** `molecule agent`: lists agents and peers, and sends one message. `molecule chat` holds a conversation. */
import { InvalidArgumentError } from 'commander'
import type { ApiAnswer } from '../../../api/api.ts'
import type { WorkspaceSummary } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { parseDuration } from '../../../duration.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import type { Column } from '../../terminal/output.ts'
import { readUsd } from '../../terminal/read-usd.ts'
import { workspaceStatusText } from '../../terminal/task-text.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list the agents and what they are doing')
    .action(async () => list(await openContext()))
  command
    .command('send')
    .description('send an agent a message and print its answer')
    .argument('<workspace>', 'id or name')
    .argument('<message>', 'the text; - reads it from stdin')
    .option('--async', 'do not wait; print the id of the task')
    .option('--context <id>', 'the conversation to continue')
    .option('--max-cost <usd>', 'what the message and all it leads to may cost, in US dollars', readUsd)
    .option(
      '--reconnect <duration>',
      'how long to wait for the platform when it goes away while the message runs (10m)',
      readReconnect,
    )
    .option('--file <path>', 'attach a file; repeat it for several', (path, before: string[] = []) => [...before, path])
    .option('--save <folder>', 'where the files of the answer go (molecule-files in the current folder)')
    .option('--no-save', 'do not save the files of the answer')
    .action(async (workspace: string, text: string, options: SendFlags) => {
      const { send } = await import('./agent-send.ts')
      const {
        async: isAsync,
        context: contextId,
        file: files,
        save,
        maxCost: maxCostUsd,
        reconnect: reconnectMs,
      } = options
      await send(await openContext(), {
        workspace,
        text,
        wait: isAsync !== true,
        contextId,
        files,
        save,
        maxCostUsd,
        reconnectMs,
      })
    })
  command
    .command('peers')
    .description('list the workspaces that an agent may talk to')
    .argument('<workspace>', 'id or name')
    .action(async (workspace: string) => peers(await openContext(), workspace))
}

function readReconnect(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('It must be a duration such as 30s or 10m.')
  return ms
}

interface SendFlags {
  readonly async?: boolean
  readonly context?: string
  readonly file?: string[]
  readonly maxCost?: number
  readonly reconnect?: number
  /** A folder, or false with `--no-save`. */
  readonly save?: string | false
}

type PeerView = ApiAnswer<'GET /registry/{id}/peers'>['peers'][number]

const STATUS: Column<Pick<PeerView | WorkspaceSummary, 'status' | 'status_reason'>> = {
  title: 'status',
  of: ({ status, status_reason: reason }) =>
    reason ? `${workspaceStatusText(status)} (${reason})` : workspaceStatusText(status),
}
const COLUMNS: readonly Column<WorkspaceSummary>[] = [
  { title: 'name', of: ({ name }) => name },
  STATUS,
  { title: 'running', of: ({ running }) => running },
  { title: 'waiting', of: ({ queue_depth: depth }) => depth },
  { title: 'doing', of: ({ status_text: text, current_task: task }) => text ?? task },
  { title: 'id', of: ({ id }) => id, isWhole: true },
]

async function list({ platform, show, table }: CommandContext): Promise<void> {
  const agents = await listWorkspaces(platform())
  await show(agents, () => table(agents, COLUMNS, 'There are no agents yet; create one with "molecule init".'))
}

const PEER_COLUMNS: readonly Column<PeerView>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'id', of: ({ id }) => id, isWhole: true },
  STATUS,
  { title: 'role', of: ({ role }) => role },
]

async function peers({ platform, show, table }: CommandContext, idOrName: string): Promise<void> {
  const client = platform()
  const id = await resolveWorkspaceId(client, idOrName)
  const { peers: others } = await client.call('GET /registry/{id}/peers', { id })
  await show(others, () => table(others, PEER_COLUMNS, `${idOrName} has no peers.`))
}
