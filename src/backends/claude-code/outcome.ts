/**
 * Turns claude's result, or the exit of its process, into the one end of the turn. Pure. `is_error` decides, not
 * `subtype`: that is `success` for a failed call to the provider.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import {
  classifyAgentError,
  type ErrorSentence,
  emptyResponse,
  exitAtStart,
  maxTurnsUsed,
  type ProcessFacts,
  processFailure,
  refusedEnd,
  unexpectedExit,
  unreadableOutput,
} from '../engine/failure/agent-errors.ts'
import { stderrTail } from '../engine/failure/run-failure.ts'
import type { EndEvent } from '../engine/turn-engine.ts'
import type { ClaudeResult } from './parse.ts'

export interface ClaudeOutcomeFacts extends ProcessFacts {
  readonly maxTurns: number | undefined
  /** When the provider's rate limit ends, if it said so during the turn. */
  readonly resetsAtMs?: number | undefined
}

/** This tool asks the person at the terminal. There is none, so it is always denied, with that reason. */
export const QUESTION_TOOL = 'AskUserQuestion'

export function endOf(result: ClaudeResult, facts: ClaudeOutcomeFacts): EndEvent {
  if (result.isRefusal) return refusedEnd()
  if (result.isError) return { type: 'failed', error: errorOf(result, facts) }
  const text = withDenials(result)
  if (text === '') return { type: 'failed', error: emptyResponse('claude') }
  return { type: 'done', parts: [{ text }], finality: 'completed' }
}

/** A one-shot that ended without a result. A run that has a result is not judged by its exit code. */
export function failureOfRun(run: ProcessResult, stdout: string, facts: ClaudeOutcomeFacts): MoleculeError {
  // It printed nothing, so it may not know an option that it was started with.
  const hasStarted = stdout.trim() !== ''
  const error = processFailure(run, facts)
  if (error !== undefined) return deathInTurn(run, facts, hasStarted)
  return hasStarted ? unreadableOutput('claude', stdout) : emptyResponse('claude')
}

/** A warm process ended in the middle of a turn. `hasStarted`: it had printed something that claude prints. */
export function deathInTurn(run: ProcessResult, facts: ClaudeOutcomeFacts, hasStarted: boolean): MoleculeError {
  return rootBypassError(run) ?? (hasStarted ? unexpectedExit : exitAtStart)(run, facts)
}

function errorOf(result: ClaudeResult, { maxTurns, nowMs, resetsAtMs }: ClaudeOutcomeFacts): MoleculeError {
  if (result.subtype === 'error_max_turns') return maxTurnsUsed('claude', maxTurns)
  const { status } = result
  const text = result.text.replaceAll(OWN_LOGIN, 'run "claude" and log in')
  const error = classifyAgentError({ text, status, nowMs, sentences: SENTENCES })
  if (error === undefined) {
    const code = text.startsWith('API Error') ? 'provider_failed' : 'agent_failed'
    return new MoleculeError(code, text || 'claude failed without a message', { retryable: true })
  }
  if (!LIMIT_CODES.has(error.code) || resetsAtMs === undefined) return error
  // Only the limit of a plan has this time.
  const details = { ...error.details, resetAfterMs: Math.max(0, resetsAtMs - nowMs) }
  return new MoleculeError('quota_exhausted', error.message, { retryable: true, details })
}

/** A command of claude's own screen. The owner reads it where there is no such command. */
const OWN_LOGIN = /please run \/login/gi

const LIMIT_CODES: ReadonlySet<string> = new Set(['rate_limited', 'quota_exhausted'])

const SENTENCES: readonly ErrorSentence[] = [
  { code: 'auth_failed', says: /run "claude" and log in/ },
  // The limit of a plan, for five hours or a week: "You've hit your session limit · resets 3pm (UTC)".
  { code: 'quota_exhausted', says: /usage limit reached|(session|hour|weekly) limit|hit your .{0,30}limit/i },
]

/** claude refuses to run; a setting of ours repairs it. */
function rootBypassError(run: ProcessResult): MoleculeError | undefined {
  if (run.exitCode === 0 || !/cannot be used with root/i.test(stderrTail(run))) return undefined
  return new MoleculeError('bad_config', ROOT_BYPASS_REMEDY)
}

export const ROOT_BYPASS_REMEDY =
  'claude refuses `permission: bypass` as root: run Molecule as another user, set IS_SANDBOX=1 in its environment if this is a sandbox, or use `permission: allowed_tools`'

/** Without this note the reader of the reply would not know what was not done: a denied tool fails no turn. */
function withDenials({ text, deniedTools }: ClaudeResult): string {
  const denied = deniedTools.filter((tool) => tool !== QUESTION_TOOL)
  if (denied.length === 0) return text
  const note = `(Not allowed in this turn: ${denied.join(', ')}.)`
  return text === '' ? note : `${text}\n\n${note}`
}
