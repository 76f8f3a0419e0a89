/** `molecule chat`: a conversation with a workspace, by keyboard or by pipe. The next chat continues it. */
import { systemClock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { type ConversationOptions, openConversation } from '../../chat/conversation.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { EXIT_FAILED, ExitError } from '../../exit-codes.ts'
import { SAVE_FOLDER } from '../../files/save-files.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'

/** The default conversation, the same in every terminal. */
const CONTEXT = 'terminal'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<workspace>', 'id or name')
    .option('--context <id>', `the conversation to continue (${CONTEXT})`)
    .option('--new', 'start a new conversation')
    .option('--save <folder>', 'where the files of answers go (molecule-files in the current folder)')
    .option('--no-save', 'do not save the files of answers')
    .action(async (workspace: string, options: ChatOptions) => chat(await openContext(), workspace, options))
}

interface ChatOptions {
  readonly context?: string
  readonly new?: boolean
  /** A folder, or false with `--no-save`. */
  readonly save?: string | false
}

async function chat(context: CommandContext, workspace: string, options: ChatOptions): Promise<void> {
  const { terminal, platform, apiUrl, command } = context
  if (options.new === true && options.context !== undefined)
    throw new MoleculeError(
      'invalid_request',
      '--new starts a conversation and --context continues one; give one of them',
    )
  const client = platform()
  const workspaceId = await resolveWorkspaceId(client, workspace)
  const { name } = await client.call('GET /workspaces/{id}', { id: workspaceId })
  const contextId = options.new === true ? `terminal-${ulid()}` : (options.context ?? CONTEXT)
  const saveFolder = options.save ?? SAVE_FOLDER
  const open = (id: string, reports: Pick<ConversationOptions, 'onReason' | 'onUnreachable'>) =>
    openConversation({ client, workspaceId, contextId: id, clock: systemClock, command, ...reports })
  const { keyboard: stdin } = terminal
  if (stdin !== undefined && terminal.screen !== undefined) {
    const { interactiveChat } = await import('../../chat/interactive-chat.ts')
    const place = { client, workspaceId, apiUrl, saveFolder }
    return await interactiveChat({ ...place, open, contextId, terminal, stdin, name, command })
  }
  const { pipedChat } = await import('../../chat/piped-chat.ts')
  if (!(await pipedChat({ open: (reports) => open(contextId, reports), terminal, name, command, saveFolder }))) {
    throw new ExitError(EXIT_FAILED)
  }
}
