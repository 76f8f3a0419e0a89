/**
 * What an agent is told of the commands and the folder that Molecule gives it: how to ask other workspaces, how to report
 * a status, where to put files. Every word of it costs tokens in each turn.
 */
import type { Turn } from '../backend.ts'

const STATUS_LINE = '- `molecule status "<text>"`: shows people what you are doing; an empty text removes it.'

const FAILURE_LINE =
  'An answer that begins with [A2A_ERROR] is a failure of the other workspace. Never pass it on unchanged: ask another one, do it yourself, or say which one was unavailable and give your own best answer.'

const COMMAND_INSTRUCTIONS = `You run as one of several workspaces of Molecule. On your PATH are:
- \`a2a peers\`: the other workspaces that you can ask.
- \`a2a delegate <workspace> "<task>"\`: gives one of them a task and prints its answer. With --async it prints the id of the task, and \`a2a status <id>\` shows its state and result. A result that you have not read when your turn ends is sent to you as a message.
${STATUS_LINE}
${FAILURE_LINE}`

/** With the exact names: some agents hide the tools of MCP servers behind a search, and call a tool by its name only. */
const toolInstructions = (name: (tool: string) => string): string =>
  `You run as one of several workspaces of Molecule. These tools of an MCP server reach the others:
- ${name('list_peers')}: the other workspaces that you can ask.
- ${name('delegate_task')}: gives one of them a task and returns its answer, however long that takes. ${name('delegate_task_async')} returns the id of the task at once; a result that you have not read when your turn ends is sent to you as a message. ${name('check_task_status')} shows the state and the result of a task, also after a call of ${name('delegate_task')} that broke off.
- ${name('get_workspace_info')}: your own workspace. ${name('send_message_to_user')} and ${name('send_file')}: reach the person while you work.
- ${name('commit_memory')}, ${name('search_memory')}, ${name('commit_summary')}, ${name('forget_memory')}: what you remember for later conversations.
If you do not have these tools, use the commands \`a2a peers\`, \`a2a delegate <workspace> "<task>"\` and \`a2a status <id>\`.
${STATUS_LINE}
${FAILURE_LINE}`

export const OUTBOX_INSTRUCTIONS =
  'Write files that belong to your answer into the folder that $MOLECULE_OUTBOX names; they are delivered with your reply.'

/**
 * How to ask the other workspaces: with the tools of the MCP server, if the agent names them so, else with commands.
 * Empty without a token, because the platform then refuses both.
 */
export function peersInstructions(
  { env, mcpServers }: Pick<Turn, 'env' | 'mcpServers'>,
  mcpToolName: ((server: string, tool: string) => string) | undefined,
): string {
  if (env['MOLECULE_WORKSPACE_TOKEN'] === undefined) return ''
  const [server] = mcpServers
  if (server === undefined || mcpToolName === undefined) return COMMAND_INSTRUCTIONS
  return toolInstructions((tool) => mcpToolName(server.name, tool))
}
