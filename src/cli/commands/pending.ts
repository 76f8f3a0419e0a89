/** `molecule pending`: lists the permission requests of running turns and answers them. */
import type { PendingAskView } from '../../client/platform-client.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { type Column, renderTable } from '../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list the requests that wait for your answer')
    .action(async () => list(await openContext()))
  for (const decision of ['allow', 'deny'] as const) {
    command
      .command(decision)
      .description(
        decision === 'allow' ? 'allow what an agent asked for' : 'deny what an agent asked for; its turn continues',
      )
      .argument('<id>', 'the id that "molecule pending" shows')
      .action(async (id: string) => {
        const { platform, show } = await openContext()
        await platform().answerAsk(id, decision)
        await show({ id, decision }, () => `${decision === 'allow' ? 'allowed' : 'denied'} ${id}\n`)
      })
  }
}

const COLUMNS: readonly Column<PendingAskView>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'workspace', of: ({ workspace_id: id }) => id },
  { title: 'tool', of: ({ tool }) => tool },
  { title: 'asked', of: ({ asked_at: at }) => at },
  { title: 'expires in', of: ({ expires_in: left }) => (typeof left === 'number' ? `${left} s` : left) },
  { title: 'what', of: ({ subject }) => subject },
]

async function list({ platform, show }: CommandContext): Promise<void> {
  const pending = await platform().listPendingAsks()
  await show(pending, () => renderTable(pending, COLUMNS, 'No request waits for your answer.'))
}
