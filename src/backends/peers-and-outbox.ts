/**
 * Wraps the backend of every agent that can run commands. It adds to the system prompt how to ask other workspaces (by
 * the tools of the workspace's MCP server if the agent gets it, else by commands), how to report a status, and a folder
 * for the files of the answer. Files in that folder become artifacts of the task. The backends do not know of it.
 */
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Artifact, Part } from '../protocol/a2a.ts'
import type { Backend, BackendEvent, Turn } from './backend.ts'
import { collectOutbox, openOutbox } from './engine/files/outbox.ts'
import { replaceRun } from './hooks.ts'

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
- ${name('get_workspace_info')}: your own workspace. ${name('send_message_to_user')}: shows people a message while you work.
- ${name('commit_memory')}, ${name('search_memory')}, ${name('commit_summary')}, ${name('forget_memory')}: what you remember for later conversations.
If you do not have these tools, use the commands \`a2a peers\`, \`a2a delegate <workspace> "<task>"\` and \`a2a status <id>\`.
${STATUS_LINE}
${FAILURE_LINE}`

const OUTBOX_INSTRUCTIONS =
  'Write files that belong to your answer into the folder that $MOLECULE_OUTBOX names; they are delivered with your reply.'

export function withPeersAndOutbox(backend: Backend, log: Log): Backend {
  return replaceRun(backend, (turn, signal) => runWithOutbox(backend, turn, { log, signal }))
}

async function* runWithOutbox(
  backend: Backend,
  turn: Turn,
  { log, signal }: { log: Log; signal: AbortSignal },
): AsyncGenerator<BackendEvent> {
  let outbox: string
  try {
    outbox = await openOutbox(turn.workingDir, turn.conversationId)
  } catch (thrown) {
    yield { type: 'failed', error: toMoleculeError(thrown) }
    return
  }
  const instructions = [turn.systemPrompt, peersInstructions(turn, backend), OUTBOX_INSTRUCTIONS]
  const extendedTurn: Turn = {
    ...turn,
    systemPrompt: instructions.filter((text) => text !== '').join('\n\n'),
    env: { ...turn.env, MOLECULE_OUTBOX: outbox },
  }
  for await (const event of backend.run(extendedTurn, signal)) {
    if (event.type === 'done') {
      const { files, refused } = await collectOutbox(outbox, turn.workingDir)
      for (const [index, file] of files.entries()) yield fileArtifactEvent(turn, index, file)
      for (const text of refused) {
        log.warn({ messageId: turn.messageId }, text)
        yield { type: 'status', text }
      }
    }
    yield event
  }
}

/** Without a token the platform refuses the commands and the tools. */
function peersInstructions({ env, mcpServers }: Turn, { mcpToolName }: Backend): string {
  if (env['MOLECULE_WORKSPACE_TOKEN'] === undefined) return ''
  const [server] = mcpServers
  if (server === undefined || mcpToolName === undefined) return COMMAND_INSTRUCTIONS
  return toolInstructions((tool) => mcpToolName(server.name, tool))
}

function fileArtifactEvent({ messageId }: Turn, index: number, file: Part): BackendEvent {
  const artifact: Artifact = { artifactId: `${messageId}-file-${index + 1}`, parts: [file] }
  const named = file.filename === undefined ? artifact : { ...artifact, name: file.filename }
  return { type: 'artifact', artifact: named, append: false, lastChunk: true }
}
