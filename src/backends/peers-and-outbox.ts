/**
 * What every agent that can run commands is given besides its message, whichever CLI it is: how to ask the other
 * workspaces, how to say what it is doing, and a folder for the files of its answer, which become artifacts of its task.
 * Wrapped around the backend, so that no backend has to know of it.
 */
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Artifact, Part } from '../protocol/a2a.ts'
import type { Backend, BackendEvent, Turn } from './backend.ts'
import { collectOutbox, openOutbox } from './engine/files/outbox.ts'

const PEERS_INSTRUCTIONS = `You run as one of several workspaces of Molecule. On your PATH are:
- \`a2a peers\`: the other workspaces that you can ask.
- \`a2a delegate <workspace> "<task>"\`: gives one of them a task and prints its answer. With --async it prints the id of the task, and \`a2a status <id>\` tells how it stands.
- \`molecule status "<text>"\`: shows people what you are doing; an empty text takes it away.
An answer that begins with [A2A_ERROR] is a failure of the other workspace. Never pass it on as it is: ask another one, do it yourself, or say which one was unavailable and give your own best answer.`

const OUTBOX_INSTRUCTIONS =
  'Files that belong to your answer: write them into the folder that $MOLECULE_OUTBOX names; they are handed over with your reply.'

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

interface Surroundings {
  readonly log: Log
  readonly signal: AbortSignal
}

async function* runWithOutbox(
  backend: Backend,
  turn: Turn,
  { log, signal }: Surroundings,
): AsyncGenerator<BackendEvent> {
  let outbox: string
  try {
    outbox = await openOutbox(turn.workingDir, turn.conversationId)
  } catch (thrown) {
    yield { type: 'failed', error: toMoleculeError(thrown) }
    return
  }
  // Without a token the commands would be refused.
  const instructions = [
    turn.systemPrompt,
    turn.env['MOLECULE_WORKSPACE_TOKEN'] === undefined ? '' : PEERS_INSTRUCTIONS,
    OUTBOX_INSTRUCTIONS,
  ]
  const given: Turn = {
    ...turn,
    systemPrompt: instructions.filter((text) => text !== '').join('\n\n'),
    env: { ...turn.env, MOLECULE_OUTBOX: outbox },
  }
  for await (const event of backend.run(given, signal)) {
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
