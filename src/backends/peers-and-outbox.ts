/**
 * Wraps the backend of every agent that can run commands. It adds to the system prompt how to ask other workspaces (by
 * the tools of the workspace's MCP server if the agent gets it, else by commands), how to report a status, and a folder
 * for the files of the answer. Files in that folder become artifacts of the task. The backends do not know of it.
 */
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Backend, BackendEvent, Turn } from './backend.ts'
import { openOutbox, outboxEvents } from './engine/files/outbox.ts'
import { OUTBOX_INSTRUCTIONS, peersInstructions } from './engine/instructions.ts'
import { replaceRun } from './hooks.ts'

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
  const instructions = [turn.systemPrompt, peersInstructions(turn, backend.mcpToolName), OUTBOX_INSTRUCTIONS]
  const extendedTurn: Turn = {
    ...turn,
    systemPrompt: instructions.filter((text) => text !== '').join('\n\n'),
    env: { ...turn.env, MOLECULE_OUTBOX: outbox },
  }
  for await (const event of backend.run(extendedTurn, signal)) {
    if (event.type === 'done') yield* await outboxEvents(turn, { folder: outbox, within: turn.workingDir, log })
    yield event
  }
}
