/** The tools that reach people while a turn works: a message and a file, each at once and no part of the answer. */
import { z } from 'zod'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { maskTokens } from '../../token-mask.ts'
import { isExternal } from '../../workspaces/workspace.ts'
import { type ToolCall, type ToolResult, tool } from './tool.ts'

/** A message is one note of the activity. */
const MESSAGE_CHARACTERS_MAX = 4000
const CAPTION_CHARACTERS_MAX = 1000
const PATH_CHARACTERS_MAX = 1000
/** As for all files of an answer. */
const FILE_BYTES_MAX = 16 * 1024 * 1024

/** The type of the note that a message to the user is. */
const MESSAGE_NOTE = 'message_to_user'

const NO_HOME = 'no person has a home chat for this workspace'

export const peopleTools = [
  tool({
    name: 'send_message_to_user',
    access: 'activity.report',
    description:
      'Sends the person a message now, while you go on working: in the chat of this conversation, else in their home chat; it is also shown in the activity. The result says where it went. It is not your answer.',
    input: z.object({ message: z.string().trim().min(1).max(MESSAGE_CHARACTERS_MAX) }),
    readOnly: false,
    async run({ message }, call) {
      const { activity, workspaceId: own, identity } = call
      const text = maskTokens(message)
      await activity.addNote(own, { type: MESSAGE_NOTE, text, by: identity.name })
      const done = 'It is shown in the activity'
      const sent = await sendToPeople([{ text }], done, call)
      return sent ?? { text: `${done}. It went to no chat: ${NO_HOME}.` }
    },
  }),
  tool({
    name: 'send_file',
    access: 'file.send',
    description:
      'Sends the person a file of your working folder now: in the chat of this conversation, else in their home chat. Where there is neither, it comes with your answer. The result says which.',
    input: z.object({
      path: z.string().min(1).max(PATH_CHARACTERS_MAX).describe('in the working folder'),
      caption: z.string().trim().max(CAPTION_CHARACTERS_MAX).optional(),
    }),
    readOnly: false,
    async run({ path, caption = '' }, call) {
      const { workspaceId: own, workspaces, identity, workingFiles } = call
      const { conversationId } = identity
      const workspace = await workspaces.get(own)
      // Prevents that a person without the right to read files gets one by this tool.
      if (workspace === undefined || conversationId === undefined)
        throw new MoleculeError('forbidden', 'only a turn of the workspace sends files')
      if (isExternal(workspace))
        throw new MoleculeError(
          'unsupported_operation',
          'the working folder is on another machine: write the file into $MOLECULE_OUTBOX, and it comes with your answer',
        )
      const { workingDir } = workspace
      const file = await workingFiles.read(path, workingDir)
      if (Buffer.byteLength(file.raw ?? '', 'base64') > FILE_BYTES_MAX)
        throw new MoleculeError('too_large', `${path} is larger than ${FILE_BYTES_MAX} bytes`)
      const text = maskTokens(caption)
      const sent = await sendToPeople(text === '' ? [file] : [{ text }, file], `${file.filename} is read`, call)
      if (sent !== undefined) return sent
      await workingFiles.attach(file, { workingDir, conversationId })
      return { text: `${file.filename} comes with your answer: ${NO_HOME}.` }
    },
  }),
]

/**
 * Undefined where there is no chat to send to. What is done already comes first in the result: a refusal by the limit must
 * not read as if nothing had happened.
 */
async function sendToPeople(parts: readonly Part[], done: string, call: ToolCall): Promise<ToolResult | undefined> {
  const { outreach, workspaceId: own, identity } = call
  try {
    const sent = await outreach.send({ workspaceId: own, conversationId: identity.conversationId }, parts)
    return sent.length === 0 ? undefined : { text: `${done}, and sent to ${sent.join(' and to ')}.` }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code !== 'too_many_requests') throw error
    return { text: `${done}, but not sent to a chat (too_many_requests): ${error.message}.`, isError: true }
  }
}
