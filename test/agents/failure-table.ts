/**
 * AG-19: the failures of an agent's model provider, and for each what the user sees and whether the message is tried
 * again. The tests run it on recorded outputs (test/contracts/backends/agent-failures.test.ts), `npm run test:agents`
 * on the real CLIs. The page docs/backends/README.md shows it to users.
 */
import { PROVIDER_FAILURES } from '../fakes/agents/provider-failures.ts'

export const FAILURES = [...PROVIDER_FAILURES, 'connection refused', 'not logged in', 'session lost'] as const
export type AgentFailure = (typeof FAILURES)[number]
export type FailingCli = 'claude' | 'codex' | 'gemini' | 'opencode'
export type Mode = 'session' | 'oneshot'

export interface FailureResult {
  /** The category in the metadata of the failed task; `rejected` is the state of a task without a category. */
  readonly category: string
  readonly isRetried: boolean
}

const RESULTS: Readonly<Record<AgentFailure, FailureResult>> = {
  'rate limit': { category: 'rate_limited', isRetried: true },
  overloaded: { category: 'overloaded', isRetried: true },
  'server error': { category: 'provider_failed', isRetried: true },
  'quota used up': { category: 'quota_exhausted', isRetried: false },
  'wrong key': { category: 'auth_failed', isRetried: false },
  'not logged in': { category: 'auth_failed', isRetried: false },
  'bad request': { category: 'bad_request', isRetried: false },
  'unknown model': { category: 'unknown_model', isRetried: false },
  'context too long': { category: 'context_full', isRetried: false },
  refusal: { category: 'rejected', isRetried: false },
  'network away': { category: 'provider_unreachable', isRetried: true },
  'connection refused': { category: 'provider_unreachable', isRetried: true },
  // Once more, in a new session.
  'session lost': { category: 'session_error', isRetried: true },
}

/** Where a CLI reports less than it knows. */
const EXCEPTIONS: Readonly<Record<string, FailureResult>> = {
  // Over ACP gemini ends a blocked answer like one without text.
  'gemini session refusal': { category: 'empty_response', isRetried: true },
  // opencode knows only the models of providers to which it is logged in.
  'opencode session not logged in': { category: 'unknown_model', isRetried: false },
  'opencode oneshot not logged in': { category: 'unknown_model', isRetried: false },
}

export const expectedResult = (cli: FailingCli, mode: Mode, failure: AgentFailure): FailureResult =>
  EXCEPTIONS[`${cli} ${mode} ${failure}`] ?? RESULTS[failure]
