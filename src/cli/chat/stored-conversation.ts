/**
 * The stored messages of a chat's conversation, as the platform shows them to everybody: with their senders, states and
 * answers. A message of a schedule is in a conversation of its own, and belongs to the chat with its workspace too.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ChatView, MeView } from '../../client/views.ts'
import { MoleculeError } from '../../errors.ts'
import { printableName } from '../../printable.ts'

export type StoredMessage = ChatView['messages'][number]

/** Who says something in a chat: the user of this terminal, the agent, or somebody else by name. */
export type ChatSpeaker = 'you' | 'agent' | { readonly name: string }

export interface StoredConversation {
  /** The newest messages, the oldest of them first; undefined while there is none. */
  read(limit: number): Promise<ChatView | undefined>
  /** The messages of a task of this conversation, or of a schedule of the workspace; empty for any other task. */
  ofTask(taskId: string): Promise<{ readonly isSchedule: boolean; readonly messages: readonly StoredMessage[] }>
  speakerOf(message: StoredMessage): Promise<ChatSpeaker>
}

export interface StoredConversationOptions {
  readonly client: Pick<PlatformClient, 'call'>
  readonly workspaceId: string
  readonly contextId: string
}

/** A task that just changed is in one of the conversations that changed last, among their newest messages. */
const CONVERSATIONS_READ = 10
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
  const newest = async (limit: number) =>
    (await client.call('GET /workspaces/{id}/conversations', { id: workspaceId, limit })).conversations
  /** A context id names a conversation of people; one of a program is found by its own id. */
  let id: string | undefined
  const read = async (limit: number) => {
    const { principal } = await me()
    if (principal === 'people') return await pageOf(contextId, limit)
    if (id === undefined) {
      const conversations = await newest(CONVERSATIONS_SEARCHED)
      id = conversations.find((one) => one.principal === principal && one.context_id === contextId)?.id
    }
    return id === undefined ? undefined : await pageOf(id, limit)
  }
  const find = (page: ChatView | undefined, taskId: string) =>
    (page?.messages ?? []).filter(({ task_id: task }) => task === taskId)
  return {
    read,
    async ofTask(taskId) {
      const messages = find(await read(MESSAGES_READ), taskId)
      if (messages.length > 0) return { isSchedule: false, messages }
      for (const { id: other, principal } of await newest(CONVERSATIONS_READ)) {
        if (!principal.startsWith('schedule:')) continue
        const scheduled = find(await pageOf(other, MESSAGES_READ), taskId)
        if (scheduled.length > 0) return { isSchedule: true, messages: scheduled }
      }
      return { isSchedule: false, messages: [] }
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

/** Names of the files that came with the message, and of those of its answer. Texts are shown, and are no files. */
export const filesOf = ({ attachments, reply }: StoredMessage) => ({
  attached: attachments.map(({ name = 'file' }) => name),
  answered: (reply?.artifacts ?? []).flatMap(({ files }) => files.map(({ name = 'file' }) => name)),
})

/** The platform cuts the text of an artifact there. */
const ARTIFACT_TEXT_CHARACTERS_MAX = 2000

/** The answer of the message; of an agent that answers with documents only, their texts. */
export function answerTextOf({ reply, task_id: taskId }: StoredMessage, command: string): string {
  if (reply === undefined || reply.text !== '') return reply?.text ?? ''
  const texts = reply.artifacts.flatMap(({ text }) => (text === undefined ? [] : [text]))
  const isCut = texts.some(({ length }) => length >= ARTIFACT_TEXT_CHARACTERS_MAX)
  return isCut ? `${texts.join('\n\n')}...\n("${command} task show ${taskId}" shows all of it)` : texts.join('\n\n')
}

const OPEN_STATES: ReadonlySet<StoredMessage['state']> = new Set([
  ...(['queued', 'running', 'waiting_for_you', 'rate_limited', 'parked'] as const),
])

/** The message can still change by itself, or by an answer. */
export const isOpen = ({ state }: StoredMessage): boolean => OPEN_STATES.has(state)

/** It waits for a message of the user. A permission takes a yes or no while its turn runs. */
export const isQuestion = ({ state, ask }: StoredMessage): boolean => state === 'waiting_for_you' && ask === undefined
