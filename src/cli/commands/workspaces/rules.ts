/** `molecule rules`: lists what agents may do without asking, and revokes it. `molecule pending allow --always` makes a rule. */
import type { RuleView } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { printable } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import type { Column } from '../../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list the rules of one workspace, or of all')
    .argument('[workspace]', 'id or name')
    .action(async (workspace: string | undefined) => list(await openContext(), workspace))
  command
    .command('revoke')
    .description('end rules: what they covered is asked again')
    .argument('<workspace>', 'id or name')
    .argument('<id...>', 'the ids that "molecule rules" shows')
    .action(async (workspace: string, ids: string[]) => {
      const { platform, show } = await openContext()
      const id = await resolveWorkspaceId(platform(), workspace)
      for (const rule of ids) await platform().call('DELETE /workspaces/{id}/rules/{rule}', { id, rule })
      await show({ revoked: ids }, () => `revoked ${ids.join(', ')}\n`)
    })
}

interface NamedRule extends RuleView {
  readonly workspace: string
}

const COLUMNS: readonly Column<NamedRule>[] = [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'workspace', of: ({ workspace }) => workspace },
  { title: 'tool', of: ({ tool }) => tool },
  { title: 'made', of: ({ made_by: by, made_at: at }) => `${at.slice(0, 10)} by ${by}` },
  {
    title: 'used',
    of: ({ used, last_used_at: last }) => (last === undefined ? 'never' : `${used}, last ${last.slice(0, 16)}`),
  },
  { title: 'covers', of: ({ scope, pattern }) => `${SCOPES[scope]}${printable(pattern.replace(/\s+/g, ' '))}` },
]

const SCOPES: Readonly<Record<RuleView['scope'], string>> = { exact: 'exactly ', prefix: '', folder: 'files below ' }

async function list({ platform, show, table }: CommandContext, named: string | undefined): Promise<void> {
  const client = platform()
  const workspaces =
    named === undefined
      ? await listWorkspaces(client)
      : [await client.call('GET /workspaces/{id}', { id: await resolveWorkspaceId(client, named) })]
  const rules: NamedRule[] = []
  for (const { id, name } of workspaces) {
    const found = await client.all('GET /workspaces/{id}/rules', 'rules', { id })
    rules.push(...found.map((rule) => ({ ...rule, workspace: name })))
  }
  await show(rules, () => table(rules, COLUMNS, 'No rules: agents ask for each permission.'))
}
