/** Names for parts of answers that the commands and the page use in several places. The contract declares them. */
import type { ApiAnswer, ApiBody } from '../api/api.ts'

/** One entry of a workspace's log. */
export type ActivityView = ApiAnswer<'GET /workspaces/{id}/activity'>['activity'][number]
export type ChatView = ApiAnswer<'GET /workspaces/{id}/conversations/{conversation}'>
export type ConversationView = ApiAnswer<'GET /workspaces/{id}/conversations'>['conversations'][number]
export type DelegationTreeView = ApiAnswer<'GET /workspaces/{id}/delegations'>['trees'][number]
export type FoldersView = ApiAnswer<'GET /folders'>
export type FoundAgentView = ApiAnswer<'GET /agents'>['agents'][number]
export type LoginLinkView = ApiAnswer<'POST /login-links'>
export type MemoryView = ApiAnswer<'GET /workspaces/{id}/memories'>['memories'][number]
export type MeView = ApiAnswer<'GET /me'>
export type MessageHitView = ApiAnswer<'GET /messages'>['messages'][number]
export type NewTokenInput = ApiBody<'POST /tokens'>
export type OpenDelegationView = ApiAnswer<'GET /delegations/open'>['delegations'][number]
/** An owner's "always allow". */
export type RuleView = ApiAnswer<'GET /workspaces/{id}/rules'>['rules'][number]
export type ScheduleView = ApiAnswer<'GET /schedules'>['schedules'][number]
/** A secret is only in the answer that made it. */
export type TokenSecretView = ApiAnswer<'POST /tokens'>
export type TokenView = ApiAnswer<'GET /tokens'>['tokens'][number]
/** A workspace as the token may see it. */
export type WorkspaceSummary = ApiAnswer<'GET /workspaces/{id}'>
export type WorkspaceUsageView = ApiAnswer<'GET /workspaces/{id}/usage'>
