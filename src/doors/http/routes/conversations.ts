/**
 * The conversations of a workspace over HTTP, as a chat shows them. Contents of files are not in these answers: an
 * attachment has its name, type and size, and `GET /tasks/:id/artifacts/:artifactId` has an artifact's content.
 */

import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { ChatPage, ChatTool, ConversationMessage, ConversationSummary } from '../../../inbox/readers.ts'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { trimEndOf } from '../../../trim-end.ts'
import { readQueryNumber } from '../server/query.ts'
import { requireWorkspace, seesConfig } from '../server/reach.ts'
import { route } from './route.ts'
import { usageSchema, viewSum } from './usage.ts'
import { withoutUndefined } from './workspace-view.ts'

const CONVERSATIONS_MAX = 50
const CONVERSATIONS_DEFAULT = 30
const MESSAGES_MAX = 50
const MESSAGES_DEFAULT = 20
const SEARCH_CHARACTERS_MAX = 200
/** The longest text of an artifact that is shown; the whole is a download. */
const ARTIFACT_TEXT_CHARACTERS_MAX = 2000

export const senderSchema = z.strictObject({ kind: z.string(), id: z.string(), name: z.string(), door: z.string() })
const stateSchema = z.enum([
  ...(['queued', 'running', 'waiting_for_you', 'rate_limited', 'parked', 'answered', 'failed', 'stopped'] as const),
])

const conversationsSchema = z.strictObject({
  conversations: z.array(
    z.strictObject({
      id: z.string(),
      context_id: z.string(),
      principal: z.string(),
      sender: senderSchema.optional().describe('Of the first message.'),
      title: z.string().describe('The first words.'),
      state: stateSchema.describe('Of the last message.'),
      messages: z.number(),
      updated_at: z.string(),
    }),
  ),
  next: z.string().optional(),
})

const fileSchema = z.strictObject({
  name: z.string().optional(),
  media_type: z.string().optional(),
  bytes: z.number().optional(),
  part: z.number().describe('Its number among the parts, from 0.'),
  url: z.string().optional(),
})

const chatMessageSchema = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  n: z.number().describe('Its number in the conversation, from 1.'),
  sender_message_id: z.string(),
  sender: senderSchema,
  text: z.string(),
  attachments: z.array(fileSchema),
  state: stateSchema,
  place: z.number().optional().describe('Messages of the conversation before it, while it is queued.'),
  next_try_at: z.string().optional(),
  reason: z.string().optional().describe('Why it waits, failed or asks; of an answered one a notice.'),
  code: z.string().optional(),
  detail: z.string().optional().describe('What the program printed; for admins and members.'),
  sent_at: z.string(),
  started_at: z.string().optional(),
  ended_at: z.string().optional(),
  duration_ms: z.number().optional().describe('Of the last attempt.'),
  interruptions: z.number().optional().describe('How often its turn was lost and run again.'),
  reply: z
    .strictObject({
      text: z.string(),
      partial: z.boolean().describe('The turn still runs, or was stopped before its end.'),
      artifacts: z.array(
        z.strictObject({
          id: z.string(),
          name: z.string().optional(),
          description: z.string().optional(),
          text: z.string().optional().describe('The beginning of a text.'),
          files: z.array(fileSchema),
        }),
      ),
    })
    .optional(),
  tools: z.array(
    z.strictObject({
      name: z.string(),
      subject: z.string().optional(),
      state: z.enum(['started', 'finished', 'failed']),
      at: z.string(),
      duration_ms: z.number().optional().describe('Without the time that a person took to answer.'),
      waited_ms: z.number().optional().describe('While it runs: how long it has waited for a person.'),
      diffs: z
        .array(z.strictObject({ path: z.string(), diff: z.string().describe('Unified text.') }))
        .optional()
        .describe('The files that it changed, where the agent reports them.'),
    }),
  ),
  more_tools: z.boolean().optional(),
  usage: usageSchema.optional(),
  ask: z
    .strictObject({
      id: z.string(),
      tool: z.string(),
      subject: z.string(),
      asked_at: z.string(),
      expires_at: z.string(),
    })
    .optional()
    .describe('The permission that it waits for.'),
  handled: z.boolean().optional().describe('Of a failed message: it was replayed or discarded.'),
  replayed_as: z.string().optional(),
})

const chatSchema = z.strictObject({
  id: z.string(),
  context_id: z.string(),
  principal: z.string(),
  messages: z.array(chatMessageSchema),
  seq: z.number().describe('The last number of the log: follow the events from here.'),
  before: z.number().optional().describe('Send it to read the messages before these.'),
  has_newer: z.boolean().describe('There are messages after these.'),
})

export const conversationRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/conversations',
    access: 'activity.read',
    reach: 'own',
    summary: 'The conversations, the last changed first; "search" finds a text; "limit" and "after" read a page',
    success: [200, 'The conversations, and "next" where there may be more'],
    answer: conversationsSchema,
    async handle({ context }, { conversations, workspaces }) {
      const workspaceId = context.req.param('id')
      await requireWorkspace(workspaces, workspaceId)
      const limit = readQueryNumber(context, 'limit', { min: 1, max: CONVERSATIONS_MAX }) ?? CONVERSATIONS_DEFAULT
      const [after, search] = [context.req.query('after'), readSearch(context.req.query('search'))]
      const page = await conversations.list({
        workspaceId,
        limit,
        ...(after !== undefined && { after }),
        ...(search !== undefined && { search }),
      })
      const answer = { conversations: page.conversations.map(viewConversation), ...(page.next && { next: page.next }) }
      return context.json(answer satisfies z.input<typeof conversationsSchema>)
    },
  }),
  route({
    method: 'get',
    path: '/workspaces/:id/conversations/:conversation',
    access: 'activity.read',
    reach: 'own',
    summary:
      'The newest messages of a conversation in order, by its id, the context id of people, or a message or task of it; "before" and "limit" read a page, "at" the one around a message',
    success: [200, 'The messages with state, reply, tools and usage'],
    answer: chatSchema,
    async handle({ context, identity }, { conversations }) {
      const limit = readQueryNumber(context, 'limit', { min: 1, max: MESSAGES_MAX }) ?? MESSAGES_DEFAULT
      const before = readQueryNumber(context, 'before', { min: 1, max: Number.MAX_SAFE_INTEGER })
      const at = context.req.query('at')
      const page = await conversations.read({
        workspaceId: context.req.param('id'),
        conversation: context.req.param('conversation'),
        limit,
        detail: seesConfig(identity),
        ...(before !== undefined && { before }),
        ...(at !== undefined && { at }),
      })
      return context.json(viewChat(page))
    },
  }),
]

export function readSearch(given: string | undefined): string | undefined {
  const text = given?.trim() ?? ''
  if (text.length <= SEARCH_CHARACTERS_MAX) return text === '' ? undefined : text
  throw new MoleculeError('invalid_request', `search must not be longer than ${SEARCH_CHARACTERS_MAX} characters`, {
    details: { path: 'search' },
  })
}

const instant = (ms: number): string => new Date(ms).toISOString()

const viewConversation = ({ id, contextId, principal, sender, title, state, ...rest }: ConversationSummary) => ({
  id,
  context_id: contextId,
  principal,
  title,
  state,
  messages: rest.messages,
  ...(sender !== undefined && { sender: { ...sender } }),
  updated_at: instant(rest.updatedAtMs),
})

const viewChat = (page: ChatPage): z.input<typeof chatSchema> => ({
  id: page.id,
  context_id: page.contextId,
  principal: page.principal,
  messages: page.messages.map(viewChatMessage),
  seq: page.seq,
  has_newer: page.hasNewer,
  ...(page.before !== undefined && { before: page.before }),
})

function viewChatMessage(message: ConversationMessage): z.input<typeof chatMessageSchema> {
  const { startedAtMs, endedAtMs, nextTryAtMs, ask } = message
  return withoutUndefined({
    id: message.id,
    task_id: message.taskId,
    n: message.n,
    sender_message_id: message.senderMessageId,
    sender: { ...message.sender },
    text: textOf(message.parts),
    attachments: filesOf(message.parts),
    state: message.state,
    place: message.place,
    reason: message.reason,
    code: message.code,
    detail: message.detail,
    next_try_at: nextTryAtMs === undefined ? undefined : instant(nextTryAtMs),
    sent_at: instant(message.admittedAtMs),
    started_at: startedAtMs === undefined ? undefined : instant(startedAtMs),
    ended_at: endedAtMs === undefined ? undefined : instant(endedAtMs),
    duration_ms: startedAtMs === undefined || endedAtMs === undefined ? undefined : endedAtMs - startedAtMs,
    interruptions: message.lostTurns,
    reply: message.reply && {
      text: textOf(message.reply.parts),
      partial: message.reply.isPartial,
      artifacts: message.reply.artifacts.map(viewArtifact),
    },
    tools: message.tools.map(viewTool),
    more_tools: message.hasMoreTools,
    usage: message.usage && viewSum(message.usage),
    ask: ask && {
      id: ask.id,
      tool: ask.tool,
      subject: ask.subject,
      asked_at: instant(ask.askedAtMs),
      expires_at: instant(ask.expiresAtMs),
    },
    handled: message.isHandled,
    replayed_as: message.replayedAs,
  })
}

const viewTool = ({ name, subject, state, atMs, durationMs, waitedMs, diffs }: ChatTool) =>
  withoutUndefined({
    name,
    subject,
    state,
    at: instant(atMs),
    duration_ms: durationMs,
    waited_ms: waitedMs,
    diffs: diffs?.slice(),
  })

const textOf = (parts: readonly Part[]): string => parts.map(({ text = '' }) => text).join('')

/** Every part that is no text: its content is not in the answer. */
const filesOf = (parts: readonly Part[]) =>
  parts.flatMap(({ text, filename, mediaType, raw, url, data }, part) => {
    if (text !== undefined) return []
    const file = withoutUndefined({
      name: filename,
      media_type: mediaType ?? (data === undefined ? undefined : 'application/json'),
      bytes: raw === undefined ? undefined : Math.floor((trimEndOf(raw, '=').length * 3) / 4),
      url,
    })
    return [{ ...file, part }]
  })

function viewArtifact({ artifactId: id, name, description, parts }: Artifact) {
  const text = textOf(parts).slice(0, ARTIFACT_TEXT_CHARACTERS_MAX)
  return withoutUndefined({ id, name, description, text: text === '' ? undefined : text, files: filesOf(parts) })
}
