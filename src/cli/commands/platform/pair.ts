/** `molecule pair`: who may talk to the bots of this platform: list, approve, deny. */
import type { ApiAnswer } from '../../../api/api.ts'
import { withoutControls } from '../../../printable.ts'
import type { DefineCommand } from '../../command-context.ts'
import type { Column } from '../../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list the people who wrote to a bot')
    .action(async () => {
      const { platform, show, table } = await openContext()
      const { pairings } = await platform().call('GET /pairings')
      await show(pairings, () => table(pairings, COLUMNS, 'No person has written to a bot yet.'))
    })
  command
    .command('approve')
    .description('let a person talk to a bot; messages that are held are answered now')
    .argument('<code>', 'the code that the bot gave the person, or <channel>/<id of the person>')
    .option('--owner', 'the person may also answer permissions and bind chats')
    .action(async (code: string, { owner }: { readonly owner?: true }) => {
      const { platform, show, command: own } = await openContext()
      const pairing = await platform().call('POST /pairings/{pairing}/approve', {
        pairing: code,
        body: { role: owner === true ? 'owner' : 'user' },
      })
      const more =
        owner === true
          ? ''
          : `\nWith --owner the person may also answer permissions and bind chats: ${own} pair approve ${pairing.channel}/${pairing.person} --owner`
      await show(pairing, () => `${withoutControls(pairing.name)} may talk to ${pairing.channel}${more}\n`)
    })
  command
    .command('deny')
    .description('ignore a person, and drop the messages that are held')
    .argument('<code>', 'the code, or <channel>/<id of the person>')
    .action(async (code: string) => {
      const { platform, show } = await openContext()
      const pairing = await platform().call('POST /pairings/{pairing}/deny', { pairing: code })
      await show(pairing, () => `${withoutControls(pairing.name)} is ignored by ${pairing.channel}\n`)
    })
}

const COLUMNS: readonly Column<ApiAnswer<'GET /pairings'>['pairings'][number]>[] = [
  { title: 'channel', of: ({ channel }) => channel },
  { title: 'person', of: ({ name }) => withoutControls(name) },
  { title: 'id', of: ({ person }) => withoutControls(person) },
  { title: 'state', of: ({ state, role }) => (state === 'approved' && role === 'owner' ? 'owner' : state) },
  { title: 'code', of: ({ code }) => code ?? '', isWhole: true },
  { title: 'held', of: ({ held }) => String(held) },
]
