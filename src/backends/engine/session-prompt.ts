/**
 * How a turn opens with an agent that has no flag for a system prompt: the instructions stand in front of the first
 * prompt of a session, and again when they have changed. So the session token carries, besides the agent's own id of
 * the session, a digest of the instructions that the session has seen, and where it matters when the session began.
 * Invariant: unchanged instructions are sent once.
 */
import { hash } from 'node:crypto'
import type { Turn } from '../backend.ts'

export interface SessionPrompt {
  /** The prompt, with the instructions in front where the session does not know them. */
  readonly prompt: string
  /** The agent's own id of the session to go on with. */
  readonly sessionId?: string
  /** When that session began, where it was told to the token. */
  readonly begunMs?: number
  /** The token to keep, for whichever session the agent then names. */
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

/** An id that an agent named and that may go on its command line: nothing that could be read as a flag. */
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
