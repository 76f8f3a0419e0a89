/** Names for parts of answers that the commands and the page use in several places. The contract declares them. */
import type { ApiAnswer, ApiBody } from '../api/api.ts'

export type FoldersView = ApiAnswer<'GET /folders'>
export type FoundAgentView = ApiAnswer<'GET /agents'>['agents'][number]
export type LoginLinkView = ApiAnswer<'POST /login-links'>
export type MeView = ApiAnswer<'GET /me'>
export type NewTokenInput = ApiBody<'POST /tokens'>
/** A secret is only in the answer that made it. */
export type TokenSecretView = ApiAnswer<'POST /tokens'>
export type TokenView = ApiAnswer<'GET /tokens'>['tokens'][number]
/** A workspace as the token may see it. */
export type WorkspaceSummary = ApiAnswer<'GET /workspaces/{id}'>
