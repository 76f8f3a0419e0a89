/** What waits for a person: the list of all pages, the permissions that agents ask for, and a rule made of an answer. */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import type { ApiClient } from './api-client.ts'
import type { RuleView } from './views.ts'

export type NeedView = ApiAnswer<'GET /needs-you'>['needs_you'][number]
/** A permission that an agent waits for. */
export type PendingAskView = ApiAnswer<'GET /pending'>['pending'][number]
export type RuleChoiceView = NonNullable<PendingAskView['would_cover']>

export interface NeedsView {
  readonly needs: readonly NeedView[]
  readonly count: number
}

/** Of one workspace, or of all. */
export async function readNeeds(client: Pick<ApiClient, 'pages'>, workspaceId?: string): Promise<NeedsView> {
  const pages = await client.pages('GET /needs-you', { workspace_id: workspaceId })
  return { needs: pages.flatMap(({ needs_you: needs }) => needs), count: pages[0]?.count ?? 0 }
}

/** Allows the ask and makes a rule: the exact one, or the one with this pattern. */
export async function allowAlways(client: Pick<ApiClient, 'call'>, id: string, pattern?: string): Promise<RuleView> {
  const body = { decision: 'allow', always: true, pattern } as const
  const { rule } = await client.call('POST /pending/{id}', { id, body })
  if (rule === undefined) throw new MoleculeError('internal', 'the platform answered without a rule')
  return rule
}
