/**
 * Wraps the backend of every agent that can run commands. It adds to the system prompt how to ask other workspaces, how
 * to report a status, and a folder for the files of the answer. Files in that folder become artifacts of the task. The
 * backends do not know of it.
 */
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Artifact, Part } from '../protocol/a2a.ts'
import type { Backend, BackendEvent, Turn } from './backend.ts'
import { collectOutbox, openOutbox } from './engine/files/outbox.ts'

const PEERS_INSTRUCTIONS = `You run as one of several workspaces of Molecule. On your PATH are:
- \`a2a peers\`: the other workspaces that you can ask.
- \`a2a delegate <workspace> "<task>"\`: gives one of them a task and prints its answer. With --async it prints the id of the task, and \`a2a status <id>\` shows its state.
- \`molecule status "<text>"\`: shows people what you are doing; an empty text removes it.
An answer that begins with [A2A_ERROR] is a failure of the other workspace. Never pass it on unchanged: ask another one, do it yourself, or say which one was unavailable and give your own best answer.`

const OUTBOX_INSTRUCTIONS =
  'Write files that belong to your answer into the folder that $MOLECULE_OUTBOX names; they are delivered with your reply.'

export function withPeersAndOutbox(backend: Backend, log: Log): Backend {
  const probe = backend.probe?.bind(backend)
  return {
    name: backend.name,
    ...(backend.stallMs !== undefined && { stallMs: backend.stallMs }),
    validate: (signal) => backend.validate(signal),
    ...(probe !== undefined && { probe }),
    run: (turn, signal) => runWithOutbox(backend, turn, { log, signal }),
    close: () => backend.close(),
  }
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
  // Without a token the platform refuses these commands.
  const instructions = [
    turn.systemPrompt,
    turn.env['MOLECULE_WORKSPACE_TOKEN'] === undefined ? '' : PEERS_INSTRUCTIONS,
    OUTBOX_INSTRUCTIONS,
  ]
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

function fileArtifactEvent({ messageId }: Turn, index: number, file: Part): BackendEvent {
  const artifact: Artifact = { artifactId: `${messageId}-file-${index + 1}`, parts: [file] }
  const named = file.filename === undefined ? artifact : { ...artifact, name: file.filename }
  return { type: 'artifact', artifact: named, append: false, lastChunk: true }
}
