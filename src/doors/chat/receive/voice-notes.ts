/**
 * Turns the voice notes of a message into text, where the platform has a command for it. A note that became text is not
 * attached: then the message is as if it had been typed, for every agent. A note that cannot be read stays a file.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { IncomingFile } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

const NOT_HEARD_TEXT = '(A voice note could not be turned into text. It is attached as a file.)'

export interface HeardNote {
  /** For the text of the message. */
  readonly text: string
  readonly isAttached: boolean
}

/** Undefined for a file that is no voice note, and for every file without the command. */
export async function hearVoice(
  file: IncomingFile,
  content: Uint8Array,
  { transcribe, signal, log, stored }: SessionContext,
): Promise<HeardNote | undefined> {
  if (transcribe === undefined || !isVoiceNote(file)) return undefined
  try {
    return { text: await transcribe({ name: file.name, content }, signal), isAttached: false }
  } catch (thrown) {
    // Prevents that a stop of the platform makes a file of the note: the next start hears it.
    if (signal.aborted) throw new MoleculeError('canceled', 'the platform stops', { retryable: true })
    log.warn({ err: toMoleculeError(thrown), channel: stored.name }, 'a voice note could not be turned into text')
    return { text: NOT_HEARD_TEXT, isAttached: true }
  }
}

export const isVoiceNote = ({ isVoice, mediaType = '', name }: IncomingFile): boolean =>
  isVoice ?? (mediaType.startsWith('audio/ogg') && name.toLowerCase().startsWith('voice'))
