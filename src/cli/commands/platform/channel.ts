/** `molecule channel`: add, list, remove, bind, unbind. A secret of a bot is never an argument (`channel-secrets.ts`). */
import type { ApiAnswer } from '../../../api/api.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { withoutControls } from '../../../printable.ts'
import { CHANNEL_KINDS } from '../../channel-kinds.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import type { Column } from '../../terminal/output.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { readAskedKind, readCredentials } from './channel-secrets.ts'

interface AddFlags {
  readonly name?: string
  readonly workspace?: string
  readonly apiUrl?: string
  readonly allowPeople?: string
  readonly allowPlaces?: string
  readonly allowBots?: string
  readonly stream: boolean
  readonly replace?: true
}

export const define: DefineCommand = (command, openContext) => {
  command
    .command('add')
    .description(
      'connect a bot; asks for its token and settings, or reads them from their variables (the token also from stdin)',
    )
    .argument('<kind>', `${Object.keys(CHANNEL_KINDS).join(', ')}, or a kind of an adapter`)
    .option('--name <name>', 'a name for the channel (its kind)')
    .option('--workspace <workspace>', 'answers direct messages, and mentions where no workspace is bound')
    .option('--service-url <url>', 'another address of the service')
    .option('--allow-people <list>', 'ids of people who need no pairing, comma-separated')
    .option('--allow-places <list>', 'answer only in these channels and groups (ids, comma-separated)')
    .option('--allow-bots <list>', 'ids of bots that are answered, comma-separated')
    .option('--no-stream', 'show an answer when it is complete, not while it is written')
    .option('--replace', 'change a channel of this name; its bindings and pairings stay')
    .action(async (kind: string, flags: AddFlags & { readonly serviceUrl?: string }) =>
      add(await openContext(), kind, { ...flags, ...(flags.serviceUrl && { apiUrl: flags.serviceUrl }) }),
    )
  command
    .command('list', { isDefault: true })
    .description('list the channels with their bound chats')
    .action(async () => list(await openContext()))
  command
    .command('remove')
    .description('remove a channel with its token, bindings and pairings')
    .argument('<channel>', 'its name')
    .action(async (name: string) => {
      const { platform, show } = await openContext()
      await platform().call('DELETE /channels/{channel}', { channel: name })
      await show({ name, done: 'remove' }, () => `removed ${name}\n`)
    })
  command
    .command('bind')
    .description('let a workspace answer every message of a chat')
    .argument('<channel>', 'its name')
    .argument('<place>', 'the id of the chat; /where in the chat shows it')
    .argument('<workspace>', 'id or name')
    .action(async (channel: string, place: string, workspace: string) => {
      const { platform, show } = await openContext()
      const body = { workspace_id: await resolveWorkspaceId(platform(), workspace) }
      await platform().call('PUT /channels/{channel}/bindings/{place}', { channel, place, body })
      await show({ channel, place, workspace }, () => `${workspace} answers in ${place} of ${channel}\n`)
    })
  command
    .command('unbind')
    .description('unbind a chat: only mentions are answered there, by the default workspace')
    .argument('<channel>', 'its name')
    .argument('<place>', 'the id of the chat')
    .action(async (channel: string, place: string) => {
      const { platform, show } = await openContext()
      await platform().call('DELETE /channels/{channel}/bindings/{place}', { channel, place })
      await show({ channel, place, done: 'unbind' }, () => `unbound ${place} of ${channel}\n`)
    })
}

async function add(context: CommandContext, kindName: string, flags: AddFlags): Promise<void> {
  const { platform, show, command } = context
  const kind = await readAskedKind(platform(), kindName)
  const { token, settings, apiUrl } = await readCredentials(context, kind, flags.apiUrl)
  const { name, workspace, replace, stream } = flags
  const workspaceId = workspace === undefined ? undefined : await resolveWorkspaceId(platform(), workspace)
  const given = { kind: kind.kind, token, settings, name, api_url: apiUrl, replace, workspace_id: workspaceId }
  const body = { ...given, stream, ...lists(flags) }
  const channel = await platform().call('POST /channels', { body })
  const next = [
    ...channel.steps,
    ...(workspace === undefined ? [`Bind a chat: ${command} channel bind ${channel.name} <place> <workspace>`] : []),
    `People who write to the bot get a code. Let them in: ${command} pair approve <code>`,
  ]
  await show(
    channel,
    () =>
      `added ${shellQuoted(channel.name)}: the bot ${withoutControls(channel.account ?? '')}\n${next.map((step) => `  ${step}\n`).join('')}`,
  )
}

function lists({ allowPeople, allowPlaces, allowBots }: AddFlags) {
  const split = (text: string) =>
    text
      .split(',')
      .map((id) => id.trim())
      .filter((id) => id !== '')
  return {
    ...(allowPeople !== undefined && { allowed_people: split(allowPeople) }),
    ...(allowPlaces !== undefined && { allowed_places: split(allowPlaces) }),
    ...(allowBots !== undefined && { allowed_bots: split(allowBots) }),
  }
}

async function list({ platform, show, table }: CommandContext): Promise<void> {
  const { channels } = await platform().call('GET /channels')
  const names = new Map((await listWorkspaces(platform())).map((each) => [each.id, each.name]))
  await show(channels, () =>
    table(
      channels,
      columns((id) => names.get(id) ?? id),
      'There are no channels. "molecule channel add discord" connects a bot.',
    ),
  )
}

const columns = (
  nameOf: (workspaceId: string) => string,
): readonly Column<ApiAnswer<'GET /channels'>['channels'][number]>[] => [
  { title: 'name', of: ({ name }) => name },
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'bot', of: ({ account }) => withoutControls(account ?? '') },
  { title: 'workspace', of: ({ workspace_id: id }) => (id === null ? '' : nameOf(id)) },
  {
    title: 'bound chats',
    of: ({ bindings }) => bindings.map(({ place, workspace_id: id }) => `${place} ${nameOf(id)}`).join(', '),
  },
  { title: 'state', of: ({ problem }) => withoutControls(problem ?? 'works') },
]
