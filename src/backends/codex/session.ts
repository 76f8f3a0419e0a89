/**
 * What is kept of a codex thread between turns: its id, what it has used so far (codex counts over the whole thread),
 * and which system prompt it was begun with (codex takes no other when it resumes). Opaque to everybody else. Pure.
 */
import { hash } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'

export interface TokenTotals {
  readonly input: number
  readonly output: number
}

export interface CodexSession {
  readonly thread: string
  readonly totals: TokenTotals
  /** Of the system prompt that the thread knows. */
  readonly instructions: string
}

export const NO_TOTALS: TokenTotals = { input: 0, output: 0 }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const writeSession = (session: CodexSession): string => JSON.stringify(session)

/**
 * Undefined where there is none. What is no session of ours is lost: codex, given an id that is no UUID, begins a new
 * thread in silence and says that all went well.
 */
export function readSession(token: string | undefined): CodexSession | undefined {
  if (token === undefined) return undefined
  const session = parseSession(token)
  if (session !== undefined) return session
  throw new MoleculeError('session_lost', 'the stored session is none that codex could resume')
}

function parseSession(token: string): CodexSession | undefined {
  // A bare thread id, as people write it by hand.
  if (UUID.test(token)) return { thread: token, totals: NO_TOTALS, instructions: '' }
  const value = parseJsonObject(token)
  if (value === undefined || !isJsonObject(value['totals'])) return undefined
  const { thread, instructions } = value
  const { input, output } = value['totals']
  if (typeof thread !== 'string' || !UUID.test(thread) || typeof instructions !== 'string') return undefined
  if (typeof input !== 'number' || typeof output !== 'number') return undefined
  return { thread, totals: { input, output }, instructions }
}

/** Codex adds up over a thread, also over one that was resumed: a turn used the difference. */
export function usedSince(before: TokenTotals, after: TokenTotals): { inputTokens: number; outputTokens: number } {
  const isSameCount = after.input >= before.input && after.output >= before.output
  const from = isSameCount ? before : NO_TOTALS
  return { inputTokens: after.input - from.input, outputTokens: after.output - from.output }
}

export const instructionsHash = (systemPrompt: string): string =>
  systemPrompt === '' ? '' : hash('sha256', systemPrompt, 'hex').slice(0, 16)

/** What is said to codex: with the new system prompt before it, where a resumed thread knows another. */
export function promptFor(prompt: string, systemPrompt: string, session: CodexSession | undefined): string {
  if (session === undefined || session.instructions === instructionsHash(systemPrompt)) return prompt
  const notice = systemPrompt === '' ? 'They no longer apply.' : `They are now:\n\n${systemPrompt}`
  return `Your instructions for this conversation have changed. ${notice}\n\n---\n\n${prompt}`
}
