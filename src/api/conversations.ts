/**
 * The conversations of a workspace, as a chat shows them, and the search in all stored messages. Contents of files are not
 * in these answers: an attachment has its name, type and size, and `GET /tasks/{id}/artifacts/{artifact}` has an artifact's
 * content.
 */
import { z } from 'zod'
import { fileDiffSchema } from './activity.ts'
import { endpoint } from './endpoint.ts'
import { senderSchema } from './message.ts'
import { usageSumSchema } from './usage.ts'

const SEARCH_CHARACTERS_MAX = 200
const SEARCH_MISSING = 'must be the text that is looked for'

const searchSchema = z
  .string(SEARCH_MISSING)
  .trim()
  .max(SEARCH_CHARACTERS_MAX, `must not be longer than ${SEARCH_CHARACTERS_MAX} characters`)

const chatStateSchema = z.enum([
  ...(['queued', 'running', 'waiting_for_you', 'rate_limited', 'parked', 'answered', 'failed', 'stopped'] as const),
])

const conversationSchema = z.strictObject({
  id: z.string(),
  context_id: z.string(),
  principal: z.string(),
  sender: senderSchema.optional().describe('Of the first message.'),
  title: z.string().describe('The first words.'),
  state: chatStateSchema.describe('Of the last message that did not answer a question of a running turn.'),
  messages: z.number(),
  updated_at: z.string(),
})

const chatFileSchema = z.strictObject({
  name: z.string().optional(),
  media_type: z.string().optional(),
  bytes: z.number().optional(),
  part: z.number().describe('Its number among the parts, from 0.'),
  url: z.string().optional(),
})

const chatArtifactSchema = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  description: z.string().optional(),
  text: z.string().optional().describe('The beginning of a text.'),
  files: z.array(chatFileSchema),
})

const chatToolSchema = z.strictObject({
  name: z.string(),
  subject: z.string().optional(),
  state: z.enum(['started', 'finished', 'failed']),
  at: z.string(),
  duration_ms: z.number().optional().describe('Without the time that a person took to answer.'),
  waited_ms: z.number().optional().describe('While it runs: how long it has waited for a person.'),
  diffs: z.array(fileDiffSchema).optional().describe('The files that it changed, where the agent reports them.'),
})

const chatMessageSchema = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  n: z.number().describe('Its number in the conversation, from 1.'),
  sender_message_id: z.string(),
  sender: senderSchema,
  text: z.string(),
  attachments: z.array(chatFileSchema),
  state: chatStateSchema,
  place: z.number().optional().describe('Messages of the conversation before it, while it is queued.'),
  next_try_at: z.string().optional(),
  workspace_is: z
    .enum(['paused', 'offline'])
    .optional()
    .describe('While it is queued: why its workspace starts no message now.'),
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
      artifacts: z.array(chatArtifactSchema),
    })
    .optional(),
  tools: z.array(chatToolSchema),
  more_tools: z.boolean().optional(),
  usage: usageSumSchema.optional(),
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
  answers: z.string().optional().describe('The question of a running turn that this message answered.'),
  handled: z.boolean().optional().describe('Of a failed message: it was replayed or discarded.'),
  replayed_as: z.string().optional(),
})

export const listConversations = endpoint('GET /workspaces/{id}/conversations', {
  access: 'activity.read',
  reach: 'own',
  summary: 'The conversations, the last changed first; "search" finds a text; "limit" and "after" read a page',
  query: z.object({
    limit: z.int().min(1).max(50).default(30),
    after: z.string().optional(),
    search: searchSchema.optional(),
  }),
  success: [200, 'The conversations, and "next" where there may be more'],
  answer: z.strictObject({ conversations: z.array(conversationSchema), next: z.string().optional() }),
})

export const readConversation = endpoint('GET /workspaces/{id}/conversations/{conversation}', {
  access: 'activity.read',
  reach: 'own',
  summary:
    'The newest messages of a conversation in order, by its id, the context id of people, or a message or task of it; "before" and "limit" read a page, "at" the one around a message',
  query: z.object({
    limit: z.int().min(1).max(50).default(20),
    before: z.int().min(1).optional(),
    at: z.string().optional().describe('The id of a message or of its task.'),
  }),
  success: [200, 'The messages with state, reply, tools and usage'],
  answer: z.strictObject({
    id: z.string(),
    context_id: z.string(),
    principal: z.string(),
    messages: z.array(chatMessageSchema),
    seq: z.number().describe('The last number of the log: follow the events from here.'),
    before: z.number().optional().describe('Send it to read the messages before these.'),
    has_newer: z.boolean().describe('There are messages after these.'),
  }),
})

const messageHitSchema = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  workspace_id: z.string(),
  conversation_id: z.string(),
  context_id: z.string(),
  principal: z.string(),
  n: z.number().describe('Its number in the conversation, from 1.'),
  sender: senderSchema,
  sent_at: z.string(),
  found_in: z.enum(['message', 'answer']),
  excerpt: z.string().describe('The words around the text.'),
})

export const searchMessages = endpoint('GET /messages', {
  access: 'activity.read',
  summary:
    'The messages that contain "search", or whose answers do, the newest first; "workspace_id", "limit" and "after" read a part',
  query: z.object({
    limit: z.int().min(1).max(50).default(20),
    search: searchSchema.min(1, SEARCH_MISSING),
    workspace_id: z.string().optional(),
    after: z
      .string()
      .regex(/^[\w-]{1,64}$/, 'must be the "next" of an earlier page')
      .optional(),
  }),
  success: [200, 'The messages, and "next" where there may be more'],
  answer: z.strictObject({
    messages: z.array(messageHitSchema),
    next: z.string().optional().describe('There may be more, also where this page is empty.'),
  }),
})

export const conversationEndpoints = [listConversations, readConversation, searchMessages] as const
