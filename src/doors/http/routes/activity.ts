/**
 * The activity of a workspace over HTTP: read its entries, add a note, set its status line. The status line is shown on
 * the workspace's card and added to its log.
 */
import { addNote, readActivity as readEndpoint, setStatusText } from '../../../api/activity.ts'
import { maskTokens } from '../../../token-mask.ts'
import { readActivity } from '../../../views/activity.ts'
import { serve } from './route.ts'

export const activityRoutes = [
  serve(readEndpoint, ({ params, query }, { store }) => readActivity(store, { ...query, workspaceId: params.id })),
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
