/** `molecule token`: list, create, revoke the tokens and browser sessions of the platform. A secret is shown only once. */
import { type Command, Option } from 'commander'
import type { PlatformClient } from '../../../client/platform-client.ts'
import type { NewTokenInput, TokenView } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { lastUse } from '../../terminal/human-time.ts'
import type { Column } from '../../terminal/output.ts'
import { collectValues } from '../workspaces/workspace-create.ts'

/** A token of a conversation is made by the platform, for the processes of a turn. */
const ROLES = ['admin', 'member', 'viewer', 'caller', 'workspace'] as const

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list the tokens and browser sessions, without their secrets')
    .action(async () => list(await openContext()))
  defineCreate(command.command('create'), openContext)
  command
    .command('revoke')
    .description('end tokens or browser sessions now; their open streams and waiting calls end too')
    .argument('<id...>', 'the ids that "molecule token list" shows')
    .action(async (ids: string[]) => revoke(await openContext(), ids))
}

function defineCreate(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .description('make a token; its secret is printed once')
    .argument('<name>', 'who or what uses it, for the list')
    .addOption(new Option('--role <role>', 'what it may do').choices(ROLES).makeOptionMandatory())
    .option('--workspace <workspace>', 'for the role workspace: the workspace that it acts as')
    .option('--only <workspace>', 'a workspace that it reaches; repeat it for several (all)', collectValues)
    .option('--expires <duration>', 'when it ends, such as 720h (never)')
    .action(async (name: string, flags: CreateFlags) => create(await openContext(), name, flags))
}

interface CreateFlags {
  readonly role: NewTokenInput['role']
  readonly workspace?: string
  readonly only?: readonly string[]
  readonly expires?: string
}

async function create(context: CommandContext, name: string, flags: CreateFlags): Promise<void> {
  const client = context.platform()
  const { id, token } = await client.call('POST /tokens', { body: await toInput(client, name, flags) })
  const { command } = context
  await context.show(
    { id, token },
    () => `${token}\n\nIt is shown only now. To end it: ${command} token revoke ${id}\n`,
  )
}

async function toInput(client: PlatformClient, name: string, flags: CreateFlags): Promise<NewTokenInput> {
  const { role, workspace, only = [], expires } = flags
  const problem = flagProblem(flags)
  if (problem !== undefined) throw new MoleculeError('invalid_request', problem)
  const reached: string[] = []
  for (const one of only) reached.push(await resolveWorkspaceId(client, one))
  return {
    name,
    role,
    ...(workspace !== undefined && { workspace_id: await resolveWorkspaceId(client, workspace) }),
    ...(reached.length > 0 && { workspaces: reached }),
    expires_in: expires,
  }
}

/** Prevents a refusal that names a field of the API where the person typed a flag. */
function flagProblem({ role, workspace, only = [] }: CreateFlags): string | undefined {
  if (role === 'workspace' && workspace === undefined)
    return '--role workspace needs --workspace NAME: the workspace that it acts as'
  if (role !== 'workspace' && workspace !== undefined)
    return `--workspace is only for --role workspace; --only NAME limits --role ${role} to a workspace`
  if (role === 'caller' && only.length === 0)
    return '--role caller needs --only NAME for each workspace that it sends to'
  return undefined
}

async function list({ platform, show, table }: CommandContext): Promise<void> {
  const { tokens } = await platform().call('GET /tokens')
  const names = new Map((await listWorkspaces(platform())).map(({ id, name }) => [id, name]))
  await show(tokens, () =>
    table(
      tokens,
      columns((id) => names.get(id) ?? id),
      'There are no tokens beside the admin token, and no browser is logged in.',
    ),
  )
}

const columns = (nameOf: (workspaceId: string) => string): readonly Column<TokenView>[] => [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'name', of: ({ name }) => name },
  { title: 'role', of: ({ role }) => role },
  {
    title: 'workspace',
    of: ({ workspace_id: id, workspaces = [] }) =>
      [...(id === undefined ? [] : [id]), ...workspaces].map(nameOf).join(', '),
  },
  { title: 'made', of: ({ created_at: at }) => at.slice(0, 10) },
  { title: 'last used', of: (token) => lastUse(token).replace(/ ?used ?/, '') },
  { title: 'ends', of: ({ expires_at: at }) => (at === null ? 'never' : at.slice(0, 10)) },
]

/** A token that cannot be revoked does not keep the others from it. */
async function revoke({ platform, show }: CommandContext, ids: readonly string[]): Promise<void> {
  const client = platform()
  const revoked: string[] = []
  let failure: unknown
  for (const id of ids) {
    try {
      await client.call('DELETE /tokens/{id}', { id })
      revoked.push(id)
    } catch (thrown) {
      failure ??= thrown
    }
  }
  if (revoked.length > 0) await show({ revoked }, () => revoked.map((id) => `revoked ${id}\n`).join(''))
  if (failure !== undefined) throw failure
}
