/**
 * The activity of a workspace over HTTP: read its entries, add a note, set its status line. The status line is shown on
 * the workspace's card and added to its log.
 */
import type { z } from 'zod'
import { type activityEntrySchema, addNote, readActivity, setStatusText } from '../../../api/activity.ts'
import type { Frozen } from '../../../api/endpoint.ts'
import type { ActivityEntry } from '../../../inbox/readers.ts'
import { maskTokens } from '../../../token-mask.ts'
import { serve } from './route.ts'

export const activityRoutes = [
  serve(readActivity, async ({ params, query }, { activity }) => {
    const { since, before, limit, type, newest, titles } = query
    const page = await activity.read({
      workspaceId: params.id,
      sinceSeq: since,
      limit,
      newest,
      withTitles: titles,
      ...(type !== undefined && { type }),
      ...(before !== undefined && { beforeSeq: before }),
    })
    return {
      activity: page.entries.map(viewActivityEntry),
      next: page.nextSeq,
      first: page.firstSeq,
      titles: page.titles && Object.fromEntries(page.titles),
    }
  }),
  serve(addNote, async ({ params, identity, body }, { activity }) => ({
    seq: await activity.addNote(params.id, { ...maskTokens(body), by: identity.name }),
  })),
  serve(setStatusText, async ({ params: { id }, identity, body }, { registry, activity }) => {
    const line = maskTokens(body.text.replaceAll(/\s+/g, ' ').trim())
    await registry.setStatusText(id, line)
    await activity.addNote(id, { type: 'status_text', text: line, by: identity.name })
    return { status_text: line }
  }),
]

export const viewActivityEntry = ({
  seq,
  atMs,
  taskId,
  conversationId,
  ...rest
}: ActivityEntry): Frozen<z.output<typeof activityEntrySchema>> => ({
  seq,
  at: new Date(atMs).toISOString(),
  task_id: taskId,
  conversation_id: conversationId,
  ...rest,
})
