/**
 * The session token of codex, opaque to the rest of the platform: the id of the thread, the tokens it has used (codex
 * counts over the whole thread), and a hash of the system prompt it began with (codex takes no other when it resumes).
 * Pure.
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
  /** Hash of the system prompt that the thread knows. */
  readonly instructions: string
  /** The model that was chosen for the thread. It keeps it, so the way back to the default must name that. */
  readonly model?: string | undefined
}

export const NO_TOTALS: TokenTotals = { input: 0, output: 0 }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const writeSession = (session: CodexSession): string => JSON.stringify(session)

/**
 * Undefined without a token. A token that is no session of ours is `session_lost`: given an id that is no UUID, codex
 * begins a new thread and reports success.
 */
export function readSession(token: string | undefined): CodexSession | undefined {
  if (token === undefined) return undefined
  const session = parseSession(token)
  if (session !== undefined) return session
  throw new MoleculeError('session_lost', 'the stored session is not one that codex can resume')
}

function parseSession(token: string): CodexSession | undefined {
  // A bare thread id, as a person writes it.
  if (UUID.test(token)) return { thread: token, totals: NO_TOTALS, instructions: '' }
  const value = parseJsonObject(token)
  if (value === undefined || !isJsonObject(value['totals'])) return undefined
  const { thread, instructions, model } = value
  const { input, output } = value['totals']
  if (typeof thread !== 'string' || !UUID.test(thread) || typeof instructions !== 'string') return undefined
  if (typeof input !== 'number' || typeof output !== 'number') return undefined
  return { thread, totals: { input, output }, instructions, ...(typeof model === 'string' && { model }) }
}

/** The tokens of one turn: the difference, because codex counts over the thread, also over a resumed one. */
export function usedSince(before: TokenTotals, after: TokenTotals): { inputTokens: number; outputTokens: number } {
  const isSameCount = after.input >= before.input && after.output >= before.output
  const from = isSameCount ? before : NO_TOTALS
  return { inputTokens: after.input - from.input, outputTokens: after.output - from.output }
}

export const instructionsHash = (systemPrompt: string): string =>
  systemPrompt === '' ? '' : hash('sha256', systemPrompt, 'hex').slice(0, 16)

/** The prompt for codex, with the system prompt before it if a resumed thread knows another one. */
export function promptFor(prompt: string, systemPrompt: string, session: CodexSession | undefined): string {
  if (session === undefined || session.instructions === instructionsHash(systemPrompt)) return prompt
  const notice = systemPrompt === '' ? 'They no longer apply.' : `They are now:\n\n${systemPrompt}`
  return `Your instructions for this conversation have changed. ${notice}\n\n---\n\n${prompt}`
}
