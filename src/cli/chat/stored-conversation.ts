/**
 * The stored messages of a chat's conversation, as the platform shows them to everybody: with their senders, states and
 * answers. A message of a schedule is in a conversation of its own, and belongs to the chat with its workspace too.
 */

import type { ChatMessageView } from '../../client/live-conversation.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ChatView, MeView } from '../../client/views.ts'
import { MoleculeError } from '../../errors.ts'
import { printableName } from '../../printable.ts'

/** Who says something in a chat: the user of this terminal, the agent, or somebody else by name. */
export type ChatSpeaker = 'you' | 'agent' | { readonly name: string }

export interface StoredConversation {
  /** The newest messages, the oldest of them first; undefined while there is none. */
  read(limit: number): Promise<ChatView | undefined>
  /** The newest messages of a conversation that belongs to the chat: its own, or one of a schedule. Undefined for others. */
  readIfShown(conversation: string): Promise<ChatView | undefined>
  speakerOf(message: ChatMessageView): Promise<ChatSpeaker>
}

export interface StoredConversationOptions {
  readonly client: Pick<PlatformClient, 'call'>
  readonly workspaceId: string
  readonly contextId: string
}

/** A message that just changed is among the newest of its conversation. */
const MESSAGES_READ = 20
/** Conversations among which a program finds its own; people need no search. */
const CONVERSATIONS_SEARCHED = 50

export function openStoredConversation(options: StoredConversationOptions): StoredConversation {
  const { client, workspaceId, contextId } = options
  let known: Promise<MeView> | undefined
  const me = () => {
    const reading = known ?? client.call('GET /me')
    known = reading
    reading.catch(() => (known = undefined))
    return reading
  }
  const pageOf = (conversation: string, limit: number) =>
    client
      .call('GET /workspaces/{id}/conversations/{conversation}', { id: workspaceId, conversation, limit })
      .catch((thrown: unknown) => {
        if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
        throw thrown
      })
  /** A context id names a conversation of people; one of a program is found by its own id. */
  let id: string | undefined
  const read = async (limit: number) => {
    const { principal } = await me()
    if (principal === 'people') return await pageOf(contextId, limit)
    if (id === undefined) {
      const query = { id: workspaceId, limit: CONVERSATIONS_SEARCHED }
      const { conversations } = await client.call('GET /workspaces/{id}/conversations', query)
      id = conversations.find((one) => one.principal === principal && one.context_id === contextId)?.id
    }
    return id === undefined ? undefined : await pageOf(id, limit)
  }
  return {
    read,
    async readIfShown(conversation) {
      const { principal } = await me()
      const page = await pageOf(conversation, MESSAGES_READ)
      const isOwn = page?.principal === principal && page.context_id === contextId
      return isOwn || isOfSchedule(page) ? page : undefined
    },
    async speakerOf({ sender }) {
      const { token_id: tokenId, name } = await me()
      // The page and a terminal of one person have tokens of their own, of one name.
      if (sender.kind === 'person' && (sender.id === tokenId || sender.name === name)) return 'you'
      const shown = printableName(sender.name)
      return { name: sender.kind === 'schedule' ? `schedule ${shown}` : shown }
    },
  }
}

/** A schedule has a conversation of its own. */
export const isOfSchedule = (of: { readonly principal?: string } | undefined): boolean =>
  of?.principal?.startsWith('schedule:') === true

/** Names of the files that came with the message, and of those of its answer. Texts are shown, and are no files. */
export const filesOf = ({ attachments, reply }: ChatMessageView) => ({
  attached: attachments.map(({ name = 'file' }) => name),
  answered: (reply?.artifacts ?? []).flatMap(({ files }) => files.map(({ name = 'file' }) => name)),
})

/** The platform cuts the text of an artifact there. */
const ARTIFACT_TEXT_CHARACTERS_MAX = 2000

/** The answer of the message; of an agent that answers with documents only, their texts. */
export function answerTextOf({ reply, task_id: taskId }: ChatMessageView, command: string): string {
  if (reply === undefined || reply.text !== '') return reply?.text ?? ''
  const texts = reply.artifacts.flatMap(({ text }) => (text === undefined ? [] : [text]))
  const isCut = texts.some(({ length }) => length >= ARTIFACT_TEXT_CHARACTERS_MAX)
  return isCut ? `${texts.join('\n\n')}...\n("${command} task show ${taskId}" shows all of it)` : texts.join('\n\n')
}
