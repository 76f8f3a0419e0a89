/** `molecule pending`: what agents wait for a person's word on, and giving it. */
import type { PendingAskView } from '../../client/platform-client.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { type Column, renderTable } from '../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list what waits for your word')
    .action(async () => list(await openContext()))
  for (const decision of ['allow', 'deny'] as const) {
    command
      .command(decision)
      .description(decision === 'allow' ? 'let an agent do what it asked for' : 'refuse it; its turn goes on without')
      .argument('<id>', 'as "molecule pending" shows it')
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
  await show(pending, () => renderTable(pending, COLUMNS, 'Nothing waits for your word.'))
}
