/** The story of a message, of which a long one has several parts. */
import type { ApiAnswer } from '../api/api.ts'
import type { ApiClient } from './api-client.ts'

type StoryPart = ApiAnswer<'GET /messages/{id}/story'>

export type StoryView = Omit<StoryPart, 'next'>

/** All steps, with the tree and the budgets of the first part and the state of the last one. */
export async function readStory(client: Pick<ApiClient, 'pages'>, id: string): Promise<StoryView> {
  const parts = await client.pages('GET /messages/{id}/story', { id })
  const { next: _next, ...last } = parts.at(-1) as StoryPart
  return { ...last, steps: parts.flatMap(({ steps }) => steps), tree: parts[0]?.tree, budgets: parts[0]?.budgets }
}
