/**
 * `molecule workspace connect-command`: a new token for the bridge of an external workspace, as the command that uses it. A
 * secret is shown only once, so a lost one is replaced. Earlier tokens stay valid: a bridge may work with one of them.
 */
import type { Command } from 'commander'
import type { TokenView } from '../../../client/views.ts'
import type { CommandContext } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { lastUse } from '../../terminal/human-time.ts'
import { ownProgram } from '../../terminal/own-command.ts'

export function defineConnectCommand(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .description('print the connect command of an external workspace, with a new token')
    .argument('<workspace>', 'id or name')
    .option('--revoke-earlier', 'end the earlier tokens of its bridges now; a bridge that uses one stops')
    .action(async (workspace: string, { revokeEarlier }: { revokeEarlier?: true }) =>
      connectCommand(await openContext(), workspace, revokeEarlier === true),
    )
}

async function connectCommand(context: CommandContext, idOrName: string, revokes: boolean): Promise<void> {
  const client = context.platform()
  const id = await resolveWorkspaceId(client, idOrName)
  const made = await client.call('POST /workspaces/{id}/connect-command', { id })
  const { connect, earlier_tokens: earlier, ...access } = made
  if (revokes) for (const token of earlier) await client.call('DELETE /tokens/{id}', { id: token.id })
  const program = ownProgram(context.terminal.env)
  const typed = connect.replace(/^molecule(?= )/, () => program)
  const answer = { ...access, connect: typed, [revokes ? 'revoked' : 'earlier_tokens']: earlier }
  await context.show(answer, () => `${typed}\n${earlierText(context, earlier, revokes)}`)
}

function earlierText({ command }: CommandContext, earlier: readonly TokenView[], revokes: boolean): string {
  if (earlier.length === 0) return '\nThe token is shown only now.\n'
  const lines = earlier.map((token) => `  ${token.id}  made ${token.created_at.slice(0, 10)}, ${lastUse(token)}\n`)
  const ids = earlier.map(({ id }) => id).join(' ')
  const [what, next] = revokes
    ? [earlier.length === 1 ? 'The earlier token has ended:' : 'The earlier tokens have ended:', '']
    : [
        earlier.length === 1 ? 'The earlier token stays valid:' : 'The earlier tokens stay valid:',
        `To end ${earlier.length === 1 ? 'it' : 'them'}: ${command} token revoke ${ids}\n`,
      ]
  return `\nThe new token is shown only now. ${what}\n${lines.join('')}${next}`
}
