/** The conversations of a workspace over HTTP, as a chat shows them, and a text in every stored message and answer. */
import type { z } from 'zod'
import {
  type chatArtifactSchema,
  type chatFileSchema,
  type chatMessageSchema,
  type chatToolSchema,
  listConversations,
  readConversation,
  searchMessages as searchEndpoint,
} from '../../../api/conversations.ts'
import type { Frozen } from '../../../api/endpoint.ts'
import type { ChatTool, ConversationMessage } from '../../../inbox/readers.ts'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { textOf } from '../../../protocol/part.ts'
import { trimEndOf } from '../../../trim-end.ts'
import { readConversations } from '../../../views/conversations.ts'
import { searchMessages } from '../../../views/message-search.ts'
import { requireOwnWorkspace, requireWorkspace, seesConfig } from '../server/reach.ts'
import { serve } from './route.ts'
import { viewSum } from './usage.ts'

/** The longest text of an artifact that is shown; the whole is a download. */
const ARTIFACT_TEXT_CHARACTERS_MAX = 2000

export const conversationRoutes = [
  serve(listConversations, async ({ params, query }, { store, workspaces }) => {
    await requireWorkspace(workspaces, params.id)
    return await readConversations(store, { ...query, workspaceId: params.id })
  }),
  serve(readConversation, async ({ params, query, identity }, { conversations }) => {
    const { limit, before, at } = query
    const page = await conversations.read({
      workspaceId: params.id,
      conversation: params.conversation,
      limit,
      detail: seesConfig(identity),
      ...(before !== undefined && { before }),
      ...(at !== undefined && { at }),
    })
    return {
      id: page.id,
      context_id: page.contextId,
      principal: page.principal,
      messages: page.messages.map(viewChatMessage),
      seq: page.seq,
      has_newer: page.hasNewer,
      before: page.before,
    }
  }),
  serve(searchEndpoint, async ({ query: { limit, search: text, after, workspace_id }, identity }, { store }) => {
    // An agent finds only the messages of its own workspace.
    const workspaceId = workspace_id ?? identity.workspaceId
    if (workspaceId !== undefined) requireOwnWorkspace(identity, workspaceId)
    return await searchMessages(store, { workspaceId, text, limit, after })
  }),
]

const instant = (ms: number): string => new Date(ms).toISOString()

function viewChatMessage(message: ConversationMessage): Frozen<z.output<typeof chatMessageSchema>> {
  const { startedAtMs, endedAtMs, nextTryAtMs, ask } = message
  return {
    id: message.id,
    task_id: message.taskId,
    n: message.n,
    sender_message_id: message.senderMessageId,
    sender: message.sender,
    text: textOf(message.parts),
    attachments: filesOf(message.parts),
    state: message.state,
    place: message.place,
    workspace_is: message.workspaceIs,
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
    answers: message.answers,
    handled: message.isHandled,
    replayed_as: message.replayedAs,
  }
}

const viewTool = (tool: ChatTool): Frozen<z.output<typeof chatToolSchema>> => ({
  name: tool.name,
  subject: tool.subject,
  state: tool.state,
  at: instant(tool.atMs),
  duration_ms: tool.durationMs,
  waited_ms: tool.waitedMs,
  diffs: tool.diffs,
})

/** Every part that is no text: its content is not in the answer. */
const filesOf = (parts: readonly Part[]): z.output<typeof chatFileSchema>[] =>
  parts.flatMap(({ text, filename, mediaType, raw, url, data }, part) => {
    if (text !== undefined) return []
    return {
      name: filename,
      media_type: mediaType ?? (data === undefined ? undefined : 'application/json'),
      bytes: raw === undefined ? undefined : Math.floor((trimEndOf(raw, '=').length * 3) / 4),
      url,
      part,
    }
  })

function viewArtifact({ artifactId, name, description, parts }: Artifact): z.output<typeof chatArtifactSchema> {
  const text = textOf(parts).slice(0, ARTIFACT_TEXT_CHARACTERS_MAX)
  return { id: artifactId, name, description, text: text === '' ? undefined : text, files: filesOf(parts) }
}
