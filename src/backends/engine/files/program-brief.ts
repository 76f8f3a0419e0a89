/**
 * What a program of the owner (`exec`, `stdio`) gets beside its message: the system prompt with the memories, the history,
 * the attachments, and a folder for the files of its answer. It stands in fields of the request and in private files that
 * variables name. The message itself stays as it is, so that `cat` and `grep` are agents too.
 * Invariant: nothing of it lies in the working folder but attachments, and no file but those outlives its turn.
 */
import type { Clock } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import type { BackendContext, Turn } from '../../backend.ts'
import { chatHistory, type RoleMessage } from '../chat-history.ts'
import { OUTBOX_INSTRUCTIONS, peersInstructions } from '../instructions.ts'
import type { TurnStream } from '../turn-engine.ts'
import { writeAttachments } from './attachments.ts'
import { outboxEvents } from './outbox.ts'
import type { TurnFolder, TurnFolders } from './turn-folders.ts'

/** Additional fields of the request, snake_case as the request itself. A field without content is absent. */
export interface BriefFields {
  readonly system_prompt?: string
  /** The oldest first. */
  readonly history?: readonly RoleMessage[]
  readonly attachments?: readonly { path: string; name: string; mime_type?: string; bytes: number }[]
  /** Why the attachments are missing. */
  readonly attachments_error?: string
  /** Files that the program puts into this folder are delivered with its answer. */
  readonly outbox: string
}

export interface ProgramBrief {
  readonly fields: BriefFields
  /** The folder of the attachments; undefined without any. */
  readonly attachmentsDir: string | undefined
  readonly folder: TurnFolder
  /** Emits the files of the outbox as artifacts of the answer. */
  deliver(): Promise<void>
}

export interface ProgramBriefOptions {
  readonly folders: TurnFolders
  /** It has `a2a` on its PATH and a token, so it is told how to use them. */
  readonly hasCommands: boolean
  readonly context: Pick<BackendContext, 'outbound'> & { readonly clock: Clock; readonly log: Log }
  readonly stream: TurnStream
}

/** The caller gives the folder back when the program no longer works on the message. */
export async function openProgramBrief(turn: Turn, options: ProgramBriefOptions): Promise<ProgramBrief> {
  const { folders, hasCommands, context, stream } = options
  const folder = folders.open()
  try {
    const { attachmentsDir, ...attached } = await attach(turn, options)
    const systemPrompt = systemPromptOf(turn, hasCommands)
    const history = chatHistory(turn.history)
    return {
      fields: {
        ...(systemPrompt !== '' && { system_prompt: systemPrompt }),
        ...(history.length > 0 && { history }),
        ...attached,
        outbox: folder.outbox,
      },
      attachmentsDir,
      folder,
      async deliver() {
        const outbox = { folder: folder.outbox, within: folder.path, log: context.log }
        for (const event of await outboxEvents(turn, outbox)) stream.emit(event)
      },
    }
  } catch (thrown) {
    folders.giveBack(folder)
    throw thrown
  }
}

function systemPromptOf(turn: Turn, hasCommands: boolean): string {
  const instructions = hasCommands ? [turn.peers, peersInstructions(turn, undefined), OUTBOX_INSTRUCTIONS] : []
  return [turn.systemPrompt, turn.recalled, ...instructions].filter((text) => text).join('\n\n')
}

type Attached = Pick<BriefFields, 'attachments' | 'attachments_error'> & { readonly attachmentsDir?: string }

/** A program that reads only text works on, also where a file cannot be used. The reason may name a path: the program gets it. */
async function attach(turn: Turn, { context, stream }: ProgramBriefOptions): Promise<Attached> {
  const { parts } = turn.request
  if (parts.every(({ type }) => type === 'text')) return {}
  try {
    const { workingDir, id: turnId } = turn
    const options = { workingDir, turnId, outbound: context.outbound, clock: context.clock }
    const { files, folder } = await writeAttachments(parts, options, stream.signal)
    const attachments = files.map(({ path, name, mediaType, bytes }) => ({
      path,
      name,
      bytes,
      mime_type: mediaType,
    }))
    return { attachments, attachmentsDir: folder }
  } catch (thrown) {
    stream.signal.throwIfAborted()
    const { message } = toMoleculeError(thrown)
    context.log.warn({ messageId: turn.messageId, problem: message }, 'a file of a message could not be used')
    stream.emit({ type: 'status', text: 'a file of the message could not be used' })
    return { attachments_error: message }
  }
}

/** Files with the prompt and the history, and the variables that name them. A file without content is not written. */
export function writeBriefFiles({ fields, attachmentsDir, folder }: ProgramBrief): Record<string, string> {
  const { system_prompt: prompt, history, outbox } = fields
  return {
    MOLECULE_OUTBOX: outbox,
    ...(prompt !== undefined && { MOLECULE_SYSTEM_PROMPT_FILE: folder.write('system-prompt.md', prompt) }),
    ...(history !== undefined && { MOLECULE_HISTORY_FILE: folder.write('history.json', JSON.stringify(history)) }),
    ...(attachmentsDir !== undefined && { MOLECULE_ATTACHMENTS: attachmentsDir }),
  }
}
