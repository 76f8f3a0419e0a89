/** `molecule memory`: list, search, add, forget what a workspace or its team remembers. */
import type { MemoryView } from '../../../client/views.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import type { Column } from '../../terminal/output.ts'

const SHOWN_DEFAULT = 20
const SHOWN_MAX = 100

interface MemoryFlags {
  readonly team?: true
  readonly lines?: string
  readonly summary?: true
}

export const define: DefineCommand = (command, openContext) => {
  const add = (name: string, description: string) =>
    command
      .command(name)
      .description(description)
      .argument('<workspace>', 'id or name')
      .option('--team', 'the memories that it shares with its parent and its siblings')
  const lines = `how many, at most ${SHOWN_MAX} (${SHOWN_DEFAULT})`
  add('list', 'list the newest memories')
    .option('-n, --lines <number>', lines)
    .action(async (workspace: string, flags: MemoryFlags) =>
      find(await openContext(), { workspace, query: undefined, flags }),
    )
  add('search', 'find memories by their words, the best match first')
    .argument('<words...>')
    .option('-n, --lines <number>', lines)
    .action(async (workspace: string, words: string[], flags: MemoryFlags) =>
      find(await openContext(), { workspace, query: words.join(' '), flags }),
    )
  add('add', 'let it remember a text')
    .argument('<text...>')
    .option('--summary', 'forget it after 30 days')
    .action(async (workspace: string, words: string[], flags: MemoryFlags) => {
      const { platform, show } = await openContext()
      const id = await resolveWorkspaceId(platform(), workspace)
      const kind = flags.summary === true ? ('summary' as const) : ('memory' as const)
      const body = { text: words.join(' '), namespace: namespaceOf(flags), kind }
      const memory = await platform().call('POST /workspaces/{id}/memories', { id, body })
      await show(memory, () => `remembered ${memory.id}\n`)
    })
  add('forget', 'forget memories')
    .argument('<id...>', 'the ids that "molecule memory list" shows')
    .action(async (workspace: string, ids: string[], flags: MemoryFlags) => {
      const { platform, show } = await openContext()
      const id = await resolveWorkspaceId(platform(), workspace)
      const namespace = namespaceOf(flags)
      for (const memory of ids) {
        await platform().call('DELETE /workspaces/{id}/memories/{memory}', { id, memory, namespace })
      }
      await show({ forgotten: ids }, () => `forgot ${ids.join(', ')}\n`)
    })
}

const namespaceOf = ({ team }: MemoryFlags): string => (team === true ? 'team' : 'workspace')

const COLUMNS: readonly Column<MemoryView>[] = [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'written', of: ({ created_at: at }) => at.slice(0, 10) },
  { title: 'by', of: ({ written_by: by }) => by },
  { title: 'text', of: ({ text }) => withoutControls(text.replace(/\s+/g, ' ')) },
]

interface Find {
  readonly workspace: string
  readonly query: string | undefined
  readonly flags: MemoryFlags
}

async function find({ platform, show, table }: CommandContext, { workspace, query, flags }: Find): Promise<void> {
  const id = await resolveWorkspaceId(platform(), workspace)
  const search = { query, limit: readLines(flags.lines), namespace: namespaceOf(flags) }
  const { memories } = await platform().call('GET /workspaces/{id}/memories', { id, ...search })
  await show(memories, () => table(memories, COLUMNS, 'It remembers nothing like that.'))
}

function readLines(given: string | undefined): number {
  if (given === undefined) return SHOWN_DEFAULT
  const number = /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (number >= 1 && number <= SHOWN_MAX) return number
  throw new MoleculeError('invalid_request', `--lines must be a whole number from 1 to ${SHOWN_MAX}, not ${given}`)
}
