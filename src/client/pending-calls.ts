/** The calls of the platform client about what needs a person: one list of all, permissions that agents ask for, rules. */
import type { ApiAnswers } from './api-types.ts'
import { allPages, type Paged, withAfter } from './pages.ts'

interface PendingRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: string
}

export interface PendingCalls {
  /** Everything that waits for a person, of one workspace or of all. */
  needsYou(workspaceId?: string): Promise<NeedsYouView>
  /** One of the ways out that a need names. */
  runAction(action: Pick<NeedView['actions'][number], 'method' | 'path' | 'body'>): Promise<unknown>
  /** Of one workspace, or of all. */
  listPendingAsks(workspaceId?: string): Promise<PendingAskView[]>
  answerAsk(id: string, decision: 'allow' | 'deny'): Promise<void>
  /** Allows it and makes a rule: the exact one, or the one with this pattern. */
  allowAlways(id: string, pattern?: string): Promise<RuleView>
  listRules(workspaceId: string): Promise<RuleView[]>
  revokeRule(workspaceId: string, id: string): Promise<void>
}

/** A permission that an agent waits for. */
export type PendingAskView = ApiAnswers['GET /pending']['pending'][number]
export type RuleChoiceView = NonNullable<PendingAskView['would_cover']>
/** An owner's "always allow". */
export type RuleView = ApiAnswers['GET /workspaces/{id}/rules']['rules'][number]
export type NeedView = ApiAnswers['GET /needs-you']['needs_you'][number]

export interface NeedsYouView {
  readonly needs: readonly NeedView[]
  readonly count: number
}

export function pendingCalls(call: (request: PendingRequest) => Promise<unknown>): PendingCalls {
  const askAt = (id: string) => `/pending/${encodeURIComponent(id)}`
  const rulesAt = (workspaceId: string) => `/workspaces/${encodeURIComponent(workspaceId)}/rules`
  const readAll = <Page extends Paged>(path: string) =>
    allPages(async (next) => (await call({ method: 'GET', path: withAfter(path, next) })) as Page)
  return {
    async needsYou(workspaceId) {
      const path =
        workspaceId === undefined ? '/needs-you' : `/needs-you?workspace_id=${encodeURIComponent(workspaceId)}`
      const pages = await readAll<ApiAnswers['GET /needs-you']>(path)
      return { needs: pages.flatMap(({ needs_you: needs }) => needs), count: pages[0]?.count ?? 0 }
    },
    runAction: ({ method, path, body }) => call({ method, path, ...(body && { body: JSON.stringify(body) }) }),
    async listPendingAsks(workspaceId) {
      const path = workspaceId === undefined ? '/pending' : `/pending?workspace_id=${encodeURIComponent(workspaceId)}`
      const pages = await readAll<ApiAnswers['GET /pending']>(path)
      return pages.flatMap(({ pending }) => pending)
    },
    async answerAsk(id, decision) {
      await call({ method: 'POST', path: askAt(id), body: JSON.stringify({ decision }) })
    },
    async allowAlways(id, pattern) {
      const body = { decision: 'allow', always: true, ...(pattern !== undefined && { pattern }) }
      const answer = await call({ method: 'POST', path: askAt(id), body: JSON.stringify(body) })
      return (answer as { readonly rule: RuleView }).rule
    },
    async listRules(workspaceId) {
      const pages = await readAll<ApiAnswers['GET /workspaces/{id}/rules']>(rulesAt(workspaceId))
      return pages.flatMap(({ rules }) => rules)
    },
    async revokeRule(workspaceId, id) {
      await call({ method: 'DELETE', path: `${rulesAt(workspaceId)}/${encodeURIComponent(id)}` })
    },
  }
}
