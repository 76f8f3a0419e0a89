/**
 * Permissions that running turns ask for. The owners get buttons, bound to exactly one use of a tool. A person who is no
 * owner gets a notice in its own chat: what exactly the tool does is for owners.
 */
import { printable, printableName } from '../../../printable.ts'
import { type PendingAskAnswer, readPendingAsks } from '../../../views/needs/pending-asks.ts'
import { createKeyedQueue } from '../../../wait.ts'
import type { ChatButton } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import { nameAsker, placesToAsk, quoted } from './ask-places.ts'
import type { PromptPosts } from './prompt-posts.ts'

export const PERMISSION_CHOICES = ['once', 'always', 'deny'] as const
type PermissionChoice = (typeof PERMISSION_CHOICES)[number]

/** A longer text comes as a file with the same buttons. */
const SUBJECT_CHARACTERS_MAX = 1200
const SUBJECT_FILE = 'request.txt'

const OVER = 'This is over: it was answered elsewhere, or denied because no answer came in time.'

export interface PermissionPrompts {
  /** Shows the open asks of the message's task, each once in each place, and closes the prompts of its other asks. */
  ask(message: HandledMessage, workspaceId: string): Promise<void>
  /** The task goes on: prompts of it that were not answered here are over. */
  expire(taskId: string): Promise<void>
}

/** `answering`: asks that are being answered here, and whose prompts are closed with that answer. */
export function createPermissionPrompts(
  context: SessionContext,
  posts: PromptPosts,
  answering: ReadonlySet<string>,
): PermissionPrompts {
  const { promptLog, store } = context
  /** One prompt of a task is shown or closed at a time: else one might be shown after it was closed. */
  const inTask = createKeyedQueue()
  const expire = async (taskId: string, openAskIds: readonly string[]) => {
    for (const prompt of await promptLog.ofTask(taskId)) {
      if (!answering.has(prompt.askId) && !openAskIds.includes(prompt.askId)) await posts.close(prompt, OVER)
    }
  }
  const ask = async (message: HandledMessage, { workspaceId, taskId }: { workspaceId: string; taskId: string }) => {
    const asks = await openAsksOf(store, workspaceId, taskId)
    await expire(
      taskId,
      asks.map(({ id }) => id),
    )
    for (const one of asks) if (!answering.has(one.id)) await askPermission({ ask: one, message }, context, posts)
  }
  return {
    async ask(message, workspaceId) {
      const { taskId } = message
      if (taskId !== undefined) await inTask(taskId, () => ask(message, { workspaceId, taskId }))
    },
    expire: (taskId) => inTask(taskId, () => expire(taskId, [])),
  }
}

/** Shows an ask where owners read it. */
async function askPermission(
  { ask, message }: { readonly ask: PendingAskAnswer; readonly message: HandledMessage },
  context: SessionContext,
  posts: PromptPosts,
): Promise<void> {
  const places = await placesToAsk(message, context)
  const subject = printable(ask.subject)
  const file = isShownWhole(subject) ? undefined : { name: SUBJECT_FILE, text: subject }
  const offered = permissionChoices(ask)
  const draft = { taskId: ask.task_id, askId: ask.id }
  for (const place of places) {
    const isHere = place === message.place
    const what = await introduction({ ask, message, isHere }, context)
    const text = file ? `${what} what is in ${SUBJECT_FILE}?` : `${what} this?\n\n\`\`\`\n${subject}\n\`\`\``
    const replyTo = isHere ? message.messageId : undefined
    await posts.post({ ...draft, place, text }, { buttonsOf: (id) => permissionButtons(id, offered), replyTo, file })
  }
  if (places.includes(message.place)) return
  const where = places.length > 0 ? 'the owners are asked in their chats with me' : NO_OWNER
  const text = `The agent waits: an owner of this bot must allow it to use **${printableName(ask.tool)}**; ${where}.`
  await posts.post(
    { ...draft, place: message.place, text, isNotice: true },
    { buttonsOf: () => [], replyTo: message.messageId },
  )
}

const NO_OWNER =
  'no owner has a chat with me yet, so it is answered with `molecule pending`, or by an owner who writes to me'

async function introduction(
  {
    ask,
    message,
    isHere,
  }: { readonly ask: PendingAskAnswer; readonly message: HandledMessage; readonly isHere: boolean },
  context: SessionContext,
): Promise<string> {
  const tool = `use **${printableName(ask.tool)}**`
  if (isHere) return `May the agent ${tool} for exactly`
  const agent = (await context.workspaces.get(ask.workspace_id))?.name ?? 'of that chat'
  return `May the agent ${quoted(agent)} ${tool}, for ${await nameAsker(message, context)}, for exactly`
}

/** The open asks of a task. A page ends at a number of bytes: a few tools with a long text fill one. */
export async function openAsksOf(
  store: SessionContext['store'],
  workspaceId: string,
  taskId: string | undefined,
): Promise<PendingAskAnswer[]> {
  const asks: PendingAskAnswer[] = []
  for (let after: string | undefined; ; ) {
    const { pending, next } = await readPendingAsks(store, { workspaceId, after })
    asks.push(...pending.filter((ask) => ask.task_id === taskId))
    if (next === undefined) return asks
    after = next
  }
}

/** Services know no longer fence than three backticks, so a text with three of them would be shown without them. */
const isShownWhole = (subject: string): boolean => subject.length <= SUBJECT_CHARACTERS_MAX && !subject.includes('```')

export function permissionChoices(ask: PendingAskAnswer): readonly PermissionChoice[] {
  return ask.would_cover === undefined ? ['once', 'deny'] : PERMISSION_CHOICES
}

const PERMISSION_BUTTONS = {
  once: { label: 'Allow once', style: 'good' },
  always: { label: 'Always', style: 'plain' },
  deny: { label: 'Deny', style: 'bad' },
} as const

const permissionButtons = (id: string, offered: readonly PermissionChoice[]): ChatButton[] =>
  PERMISSION_CHOICES.filter((choice) => offered.includes(choice)).map((choice) => ({
    id: `${id}.${choice}`,
    ...PERMISSION_BUTTONS[choice],
  }))
