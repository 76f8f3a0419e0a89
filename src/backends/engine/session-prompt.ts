/**
 * The prompt for an agent that has no flag for a system prompt: the instructions precede the first prompt of a session,
 * and again any prompt after they changed. The session token therefore holds a digest of the instructions that the
 * session knows, besides the agent's id of the session and, for some agents, the start time of the session.
 * Invariant: a session gets unchanged instructions once.
 */
import { hash } from 'node:crypto'
import type { Turn } from '../backend.ts'

export interface SessionPrompt {
  /** The prompt, after the instructions if the session does not know them. */
  readonly prompt: string
  /** The agent's id of the session to resume. */
  readonly sessionId?: string
  /** The start time of that session, if the token holds it. */
  readonly begunMs?: number
  /** The token to store for the session that the agent names. */
  readonly token: (sessionId: string, begunMs?: number) => string
}

export function sessionPromptOf(turn: Pick<Turn, 'prompt' | 'systemPrompt' | 'sessionToken'>): SessionPrompt {
  const known = parseToken(turn.sessionToken)
  const digest = digestOf(turn.systemPrompt)
  const token = (id: string, atMs?: number) => `${digest}${atMs === undefined ? '' : `@${atMs}`}:${id}`
  const isKnown = turn.systemPrompt.trim() === '' || known?.digest === digest
  const prompt = isKnown ? turn.prompt : `${wrapInstructions(turn.systemPrompt, known !== undefined)}\n\n${turn.prompt}`
  if (known === undefined) return { prompt, token }
  const { sessionId, begunMs } = known
  return { prompt, token, sessionId, ...(begunMs !== undefined && { begunMs }) }
}

/** A valid session id of an agent. It goes on a command line, so it must not look like a flag. */
export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_][\w.:@/-]{0,199}$/.test(value)
}

interface ParsedToken {
  readonly digest: string
  readonly sessionId: string
  readonly begunMs: number | undefined
}

function parseToken(token: string | undefined): ParsedToken | undefined {
  const [, digest, begun, sessionId] = /^([0-9a-f]{16}|none)(?:@(\d{1,15}))?:(.+)$/s.exec(token ?? '') ?? []
  if (digest === undefined || !isSessionId(sessionId)) return undefined
  return { digest, sessionId, begunMs: begun === undefined ? undefined : Number(begun) }
}

function wrapInstructions(systemPrompt: string, isChange: boolean): string {
  const note = isChange ? 'These instructions replace the ones given before.\n' : ''
  return `<instructions>\n${note}${systemPrompt.trim()}\n</instructions>`
}

function digestOf(systemPrompt: string): string {
  if (systemPrompt.trim() === '') return 'none'
  return hash('sha256', systemPrompt, 'hex').slice(0, 16)
}
