/** `molecule chat`: a conversation with a workspace, by keyboard or by pipe. The next chat continues it. */
import { systemClock } from '../../clock.ts'
import { ulid } from '../../ids.ts'
import { openConversation } from '../chat/conversation.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { EXIT_FAILED, ExitError } from '../run-program.ts'

/** The default conversation, the same in every terminal. */
const CONTEXT = 'terminal'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<workspace>', 'id or name')
    .option('--context <id>', `the conversation to continue (${CONTEXT})`)
    .option('--new', 'start a new conversation')
    .action(async (workspace: string, options: ChatOptions) => chat(await openContext(), workspace, options))
}

interface ChatOptions {
  readonly context?: string
  readonly new?: boolean
}

async function chat({ terminal, platform }: CommandContext, workspace: string, options: ChatOptions): Promise<void> {
  const client = platform()
  const workspaceId = await resolveWorkspaceId(client, workspace)
  const { name } = await client.getWorkspace(workspaceId)
  const contextId = options.new === true ? `terminal-${ulid()}` : (options.context ?? CONTEXT)
  const onUnreachable = (error: Error) => terminal.err(`· ${error.message}; waiting for the platform\n`)
  const conversation = openConversation({ client, workspaceId, contextId, clock: systemClock, onUnreachable })
  const { keyboard } = terminal
  if (keyboard !== undefined && terminal.screen !== undefined) {
    const { interactiveChat } = await import('../chat/interactive-chat.ts')
    return await interactiveChat({ conversation, terminal, stdin: keyboard, name, permissions: client })
  }
  const { pipedChat } = await import('../chat/piped-chat.ts')
  await conversation.history()
  if (!(await pipedChat(conversation, terminal, name))) throw new ExitError(EXIT_FAILED)
}
